#pragma once
/// Locks, park and wake.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/cancellation.hpp"
#include "base/process.hpp"

namespace wye::inline v0::base {

using Lock = std::unique_lock<std::mutex>;

/// Tells the processor that this thread polls memory in a loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The approximate cost of parking and waking a thread.
inline constexpr Duration parking = std::chrono::microseconds(4);

/// Polls `ready()` for about as long as parking would `cost`. Returns whether it became true. A
/// thread that polls first and then parks spends at most twice the cost of the better choice
/// (Karlin et al., "Competitive randomized algorithms for non-uniform problems", SODA 1990). It
/// continues at once if threads alternate quickly.
template <class Ready>
bool seen_before_parking(Ready ready, Duration cost = parking) {
  const Instant start = Clock::steady().now();
  do {
    for (int i = 0; i < 8; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (Clock::steady().now() - start < cost);
  return false;
}

/// Releases `lock` while it polls. `ready()` must not need the lock.
template <class Ready>
bool seen_before_parking(Lock& lock, Ready ready, Duration cost = parking) {
  lock.unlock();
  const bool seen = seen_before_parking(ready, cost);
  lock.lock();
  return seen;
}

/// Locks a mutex that no thread holds for longer than parking costs. Polls before it parks.
inline Lock lock_soon(std::mutex& mutex) {
  for (int i = 0; i < 32; ++i) {
    if (mutex.try_lock()) return Lock(mutex, std::adopt_lock);
    relax();
  }
  return Lock(mutex);
}

/// Returns the instant of the steady clock at which `clock` will show `until`, if it runs. A thread
/// that waits by the application's clock parks until then.
inline Instant parked_until(const Clock& clock, Instant until) noexcept {
  if (until == Instant::max() || &clock == &Clock::steady()) return until;
  return Deadline(until - std::min(until, clock.now())).at(Clock::steady());
}

class Gate;

/// Has `ManualClock::advance` wake a gate, while this exists.
/// Threads: thread-safe. The lock of the registry is a leaf: `mutex` may be held.
class WokenByClock {
 public:
  WokenByClock(const ManualClock& clock, std::mutex& mutex, Gate& gate) noexcept;
  ~WokenByClock();
  WokenByClock(const WokenByClock&) = delete;  // the registry has its address

 private:
  friend class ClockRegistry;
  const ManualClock* const clock_;
  std::mutex& mutex_;
  Gate& gate_;
  std::uint64_t round_ = 0;  // of the last call that woke it
  WokenByClock* before_ = nullptr;
  WokenByClock* next_ = nullptr;
};

/// Parks threads until a condition under the caller's mutex holds. Parked threads cost nothing.
/// Threads: thread-safe.
class Gate {
 public:
  Gate() : changed_() {}
  /// Destroys nothing in a child of `fork`: the destruction would wait for the parent's parked
  /// threads.
  ~Gate() {
    if (!origin_.is_inherited()) changed_.~condition_variable();
  }
  Gate(const Gate&) = delete;
  /// Parks until `ready()` or `until`. Returns false if `until` passed. Calls `ready` under `lock`.
  template <class Ready>
  bool wait(Lock& lock, Instant until, Ready ready) {
    const CancellationHeld held;
    if (until == Instant::max()) return changed_.wait(lock, ready), true;
    return changed_.wait_until(lock, until, ready);
  }
  /// Parks until `ready()`, or until `clock` shows `until`. A ManualClock that is advanced wakes
  /// the thread. Otherwise the thread parks until the clock shows `until` if it runs.
  template <class Ready>
  bool wait(Lock& lock, const Clock& clock, Instant until, Ready ready) {
    if (until == Instant::max()) return wait(lock, until, ready);
    const Instant parked = parked_until(clock, until);
    const auto* const manual = dynamic_cast<const ManualClock*>(&clock);
    if (!manual) return wait(lock, parked, ready);
    const WokenByClock woken(*manual, *lock.mutex(), *this);
    bool is_ready = false;
    wait(lock, parked, [&] { return (is_ready = ready()) || manual->now() >= until; });
    return is_ready;
  }
  void wake_one() noexcept { changed_.notify_one(); }
  void wake_all() noexcept { changed_.notify_all(); }

 private:
  const Origin origin_;
  union {
    std::condition_variable changed_;
  };
};

/// A lock for sections of some nanoseconds: half the cost of an uncontended mutex. A contender
/// backs off, then yields, then sleeps, because the holder may have been preempted. Do not hold it
/// during a call that may block.
/// Threads: thread-safe.
class SpinLock {
 public:
  void lock() noexcept {
    for (unsigned tries = 0; locked_.exchange(true, std::memory_order_acquire); ++tries) contend(tries);
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  void contend(unsigned tries) const noexcept {
    if (tries >= 100) return std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (tries >= 2) std::this_thread::yield();
    // Exponential back-off: meanwhile the holder continues, with the lock and the data in its own
    // processor's cache (Anderson, "The performance of spin lock alternatives for shared-memory
    // multiprocessors", IEEE TPDS 1990).
    for (unsigned i = 0; i < 64u << std::min(tries, 2u); ++i) relax();
  }
  std::atomic<bool> locked_{false};
};

}  // namespace wye::base
