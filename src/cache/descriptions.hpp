#pragma once
/// Programs by the description they were made from.
#include <wye/base/bytes.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/provider.hpp"
#include "kernel/description.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// The last 256 descriptions that programs were made from, up to 16 MiB of source.
/// Threads: thread-safe.
class Descriptions {
 public:
  /// Returns the program made from an equal description, or makes one. A description that reads files or calls a
  /// callback is made anew each time.
  /// Errors: those of `AnyKernel::make`.
  Result<std::shared_ptr<const device::Program>> find_or_make(const KernelDescription& description);
  void clear();

 private:
  struct Kept {
    std::uint64_t sample;  ///< `kernel::sample` of the description
    std::unique_ptr<const KernelDescription> description;
    std::shared_ptr<const device::Program> program;
    Bytes size;
  };
  using List = std::list<Kept>;

  // Under `mutex_`.
  std::shared_ptr<const device::Program> find(const KernelDescription& description, std::uint64_t sample);
  void drop_oldest(List& dropped);

  std::mutex mutex_;
  List kept_;  ///< most recently used first
  std::unordered_multimap<std::uint64_t, List::iterator> by_sample_;
  Bytes size_;
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
