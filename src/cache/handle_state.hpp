#pragma once
/// The implementation of KernelHandle.
#include <wye/base/result.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

#include "cache/cache.hpp"

namespace wye::inline v0::cache {

/// An executable that was found, and the uses since. It counts them without a lock; the table adds
/// them up before it reads its numbers or evicts.
/// Threads: one thread at a time.
class HandleState {
 public:
  HandleState(std::shared_ptr<Cache> cache, std::shared_ptr<const device::Program> program,
              std::shared_ptr<device::DeviceBase> device);
  HandleState(const HandleState&) = delete;  // the table has the address of `uses_`
  ~HandleState() { release(); }

  /// Errors: those of `Cache::provide`.
  Result<const Executable*> find_or_build(Deadline deadline) {
    if (found_ == &program_->current() && !device_->lost()) return hit();
    return find(deadline);
  }

 private:
  const Executable* hit() noexcept {
    if (const std::uint64_t now = cache_->table_.stamp(*uses_.entry))
      uses_.used.store(now, std::memory_order_relaxed);
    uses_.hits.store(uses_.hits.load(std::memory_order_relaxed) + 1,
                     std::memory_order_relaxed);  // the only writer
    return &executable_;
  }
  Result<const Executable*> find(Deadline deadline);
  void release() noexcept;

  const std::shared_ptr<Cache> cache_;
  const std::shared_ptr<const device::Program> program_;
  const std::shared_ptr<device::DeviceBase> device_;
  const device::Program* found_ = nullptr;  ///< the program of `executable_`
  Executable executable_;
  HandleUses uses_;
};

}  // namespace wye::cache
