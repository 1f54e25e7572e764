#pragma once
/// Tells a running host function to stop early.
#include <wye/base/clock.hpp>

#include <atomic>

namespace wye {
inline namespace v0 {

/// Tells a host function that its job was cancelled or that the job's time limit passed. Valid during the call that
/// received it.
/// Threads: thread-safe.
/// Cost:    `stop_requested` is one load, and one clock read if the job has a time limit. Call it every few thousand
///          items.
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
