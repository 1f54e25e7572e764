#pragma once
/// What a KernelHandle is inside.
#include <wye/base/result.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

#include "cache/cache.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// An executable that was found, and how often it was used since.
/// Threads: of one; only `settle` and `key` are the cache's, while this one is entered there.
class Hold {
 public:
  Hold(std::shared_ptr<Cache> cache, std::shared_ptr<const device::Program> program,
       std::shared_ptr<device::DeviceBase> device);
  Hold(const Hold&) = delete;  // the cache knows where it is
  ~Hold();

  /// Errors: those of `Cache::provide`.
  Result<const Executable*> find_or_build(Deadline deadline) {
    if (found_ == &program_->current() && !device_->lost()) return hit();
    return find(deadline);
  }

  // Under the cache's mutex.
  void begin(std::shared_ptr<Tally> tally) noexcept;
  /// Tells the tally what was counted.
  void settle() noexcept;
  const Cache::Key& key() const noexcept { return key_; }
  bool was_used_again() const noexcept { return hits_.load(std::memory_order_relaxed) != 0; }

 private:
  const Executable* hit() noexcept {
    if (const std::uint64_t now = cache_->touch(*tally_)) used_.store(now, std::memory_order_relaxed);
    hits_.store(hits_.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);  // nobody else writes it
    return &executable_;
  }
  Result<const Executable*> find(Deadline deadline);
  void let_go() noexcept;

  const std::shared_ptr<Cache> cache_;
  const std::shared_ptr<const device::Program> program_;
  const std::shared_ptr<device::DeviceBase> device_;
  const device::Program* found_ = nullptr;  ///< whose executable it is
  Executable executable_;
  Cache::Key key_{};
  std::shared_ptr<Tally> tally_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> hits_{0};
  std::uint64_t told_ = 0;  ///< of `hits_`
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
