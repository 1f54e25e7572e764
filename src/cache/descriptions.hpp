#pragma once
/// Programs by the description they were made from.
#include <wye/base/bytes.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/provider.hpp"
#include "kernel/description.hpp"

namespace wye::inline v0::cache {

/// The last 256 descriptions that programs were made from, up to 16 MiB of source.
/// Threads: thread-safe.
class Descriptions {
 public:
  /// Returns the program made from an equal description, or makes one. A description that reads
  /// files or calls a callback is made anew each time.
  /// Errors: those of `AnyKernel::make`.
  Result<std::shared_ptr<const device::Program>> find_or_make(const KernelDescription& description);
  void clear();

 private:
  struct Kept {
    KernelDescription description;
    std::shared_ptr<const device::Program> program;
    Bytes size;
    std::uint64_t used = 0;  ///< `uses_` at the last use
  };
  using BySample = std::unordered_multimap<std::uint64_t, Kept>;  ///< by `kernel::sample` of the description

  /// Call it under `mutex_`.
  std::shared_ptr<const device::Program> find(const KernelDescription& description, std::uint64_t sample);

  std::mutex mutex_;
  BySample kept_;
  Bytes size_;  ///< of all
  std::uint64_t uses_ = 0;
};

}  // namespace wye::cache
