#pragma once
/// A kernel that is looked up in a ShaderCache once.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/executable.hpp>

#include <memory>

namespace wye {
inline namespace v0 {

namespace cache {
class HandleState;
}

/// A kernel on one device. Repeated use costs a few loads: it takes no lock and copies no shared pointer.
///
///     auto scale = cache.handle(kernel, device);
///     while (...) {
///       auto ready = scale->find_or_build();
///       if (!ready) return ready.error();
///       lease.dispatch(**ready, ...);
///     }
///
/// Threads: one thread at a time; each thread has its own handle.
class WYE_API KernelHandle {
 public:
  KernelHandle(KernelHandle&&) noexcept;
  KernelHandle& operator=(KernelHandle&&) noexcept;
  ~KernelHandle();

  /// Returns the executable that `ShaderCache::find_or_build` would return. Every call is a use, for metrics and for the
  /// order of eviction. The pointer is valid until the next call or the end of the handle; the executable is not evicted
  /// before that.
  /// Errors: those of `ShaderCache::find_or_build`; closed (moved from).
  /// Cost:   about a third of copying an `Executable` (bench/cache_bench.cpp).
  Result<const Executable*> find_or_build(Deadline deadline = {});

 private:
  friend class ShaderCache;
  explicit KernelHandle(std::unique_ptr<cache::HandleState> state);
  std::unique_ptr<cache::HandleState> state_;
};

}  // namespace v0
}  // namespace wye
