#pragma once
/// Threads that wait for a lease, in a known order.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

namespace wye::test {

/// A clock that counts its readings. A lease that has to wait reads it for its deadline, then under
/// the pool's lock, under which it is queued, and last under that lock before it parks.
class CountingClock final : public Clock {
 public:
  Instant now() const noexcept override {
    ++readings;
    return Clock::steady().now();
  }
  mutable std::atomic<int> readings{0};
};

/// Waits until a thread that began to lease after `before` readings of the clock is queued in
/// `pool`.
inline void await_waiter(const ContextPool& pool, const CountingClock& clock, int before) {
  while (clock.readings < before + 3) std::this_thread::yield();
  (void)pool.metrics();  // takes the lock that the waiter held while it read the clock
}

/// A thread with a lease. When the constructor has returned, the thread is queued in `pool`.
class Waiting {
 public:
  /// `request` has a relative deadline or none.
  Waiting(ContextPool& pool, const CountingClock& clock, const LeaseRequest& request = {}) {
    const int before = clock.readings;
    thread_ = std::thread([this, &pool, request] {
      lease_.emplace(pool.lease(request));
      has_returned_ = true;
    });
    await_waiter(pool, clock, before);
  }
  Waiting(const Waiting&) = delete;  // its thread has its address
  ~Waiting() {
    if (thread_.joinable()) thread_.join();
  }
  bool has_returned() const { return has_returned_; }
  /// Waits for the lease or its error.
  Result<Lease> get() {
    thread_.join();
    return *std::move(lease_);
  }

 private:
  std::optional<Result<Lease>> lease_;
  std::atomic<bool> has_returned_{false};
  std::thread thread_;
};

}  // namespace wye::test
