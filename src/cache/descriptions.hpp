#pragma once
/// Programs by what they are made of.
#include <wye/base/bytes.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "device/provider.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// A description and the program that was made of it.
struct Described {
  std::uint64_t sample = 0;  ///< `kernel::sample` of the description
  std::shared_ptr<const KernelDescription> description;
  std::shared_ptr<const device::Program> program;
};

/// The descriptions that were asked for last.
/// Threads: thread-safe.
class Descriptions {
 public:
  /// The program of `description`, which is made where there is none.
  /// Errors: those of `AnyKernel::make`.
  Result<Described> find_or_make(const KernelDescription& description, std::uint64_t sample);
  void clear();

 private:
  struct Kept {
    Described described;
    Bytes size;
  };
  using List = std::list<Kept>;

  // Under `mutex_`.
  List::iterator find(const KernelDescription& description, std::uint64_t sample);

  std::mutex mutex_;
  List kept_;  ///< used last, first
  Bytes size_;
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
