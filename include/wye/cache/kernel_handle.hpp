#pragma once
/// A kernel that was looked up in a ShaderCache once and for all.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/executable.hpp>

#include <memory>

namespace wye {
inline namespace v0 {

namespace cache {
class HandleState;
}

/// A kernel on one device, as a cache has it. Asking it again costs a few loads: what `ShaderCache::find_or_build` does
/// without finding, counting what it gives among holders, or a lock.
///
///     auto scale = cache.handle(kernel, device);
///     while (...) {
///       auto ready = scale->find_or_build();
///       if (!ready) return ready.error();
///       lease.dispatch(**ready, ...);
///     }
///
/// Threads: one at a time; every thread has its own.
class WYE_API KernelHandle {
 public:
  KernelHandle(KernelHandle&&) noexcept;
  KernelHandle& operator=(KernelHandle&&) noexcept;
  ~KernelHandle();

  /// The executable that `ShaderCache::find_or_build` would give: that of last time, unless the kernel has been replaced
  /// (hot reload). Every call is a use, for metrics and for the order of eviction. It is held, and so never evicted, and may be
  /// used through the pointer, until the next call or the handle's end.
  /// Errors: those of `ShaderCache::find_or_build`; closed (moved from).
  /// Cost:   about half of copying an `Executable` (bench/cache_bench.cpp).
  Result<const Executable*> find_or_build(Deadline deadline = {});

 private:
  friend class ShaderCache;
  explicit KernelHandle(std::unique_ptr<cache::HandleState> state);
  std::unique_ptr<cache::HandleState> state_;
};

}  // namespace v0
}  // namespace wye
