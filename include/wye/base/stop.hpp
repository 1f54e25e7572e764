#pragma once
/// How running host functions hear that nobody wants their answer any more.
#include <wye/base/clock.hpp>

#include <atomic>

namespace wye {
inline namespace v0 {

/// Says whether to stop early: because the job was cancelled, or because its time limit passed.
/// Valid during the host function it was given to.
/// Threads: thread-safe.
/// Cost:    `stop_requested` is one load, and one clock read where the job has a time limit; ask every few
///          thousand items.
class StopToken {
 public:
  StopToken() = default;
  StopToken(const std::atomic<bool>* flag, Instant until = Instant::max(), const Clock* clock = nullptr)
      : flag_(flag), until_(until), clock_(clock) {}
  bool stop_requested() const noexcept {
    if (flag_ && flag_->load(std::memory_order_relaxed)) return true;
    return clock_ && until_ != Instant::max() && clock_->now() >= until_;
  }

 private:
  const std::atomic<bool>* flag_ = nullptr;
  Instant until_ = Instant::max();
  const Clock* clock_ = nullptr;
};

}  // namespace v0
}  // namespace wye
