#pragma once
/// Locks, park and wake.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/process.hpp"

namespace wye {
inline namespace v0 {
namespace base {

using Lock = std::unique_lock<std::mutex>;

/// Tells the processor that this thread is looking at memory in a loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// What parking and being woken costs a thread, about.
inline constexpr Duration parking = std::chrono::microseconds(4);

/// Looks for about as long as parking would `cost`, and says whether it saw `ready()`. Who looks first and parks then spends
/// at most twice what the better of the two would have (Karlin et al., "Competitive randomized algorithms for non-uniform
/// problems", SODA 1990), and is there at once where threads hand work to and fro.
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

/// The same of what is seen without `lock`, which is let go of meanwhile.
template <class Ready>
bool seen_before_parking(Lock& lock, Ready ready) {
  lock.unlock();
  const bool seen = seen_before_parking(ready);
  lock.lock();
  return seen;
}

/// Locks a mutex that nobody holds for longer than parking costs: looks again before it parks.
inline Lock lock_soon(std::mutex& mutex) {
  for (int i = 0; i < 32; ++i) {
    if (mutex.try_lock()) return Lock(mutex, std::adopt_lock);
    relax();
  }
  return Lock(mutex);
}

/// The instant of the steady clock at which `clock` will show `until`, if it runs: what to park until when
/// time is told by a clock of the host's.
inline Instant parked_until(const Clock& clock, Instant until) noexcept {
  if (until == Instant::max() || &clock == &Clock::steady()) return until;
  return Deadline(until - clock.now()).at(Clock::steady());
}

/// Where threads park until something they can see under the caller's mutex has changed. Costs nothing while
/// parked.
/// Threads: thread-safe.
class Gate {
 public:
  Gate() : changed_() {}
  /// In a child of `fork` nothing is destroyed: that would wait for threads of the parent that were parked here.
  ~Gate() {
    if (!origin_.is_inherited()) changed_.~condition_variable();
  }
  Gate(const Gate&) = delete;
  /// Parks until `ready()` or `until`; false where it gave up. `lock` is held whenever `ready` is asked.
  template <class Ready>
  bool wait(Lock& lock, Instant until, Ready ready) {
    if (until == Instant::max()) return changed_.wait(lock, ready), true;
    return changed_.wait_until(lock, until, ready);
  }
  void wake_one() noexcept { changed_.notify_one(); }
  void wake_all() noexcept { changed_.notify_all(); }

 private:
  const Origin origin_;
  union {
    std::condition_variable changed_;
  };
};

/// A lock for sections of some nanoseconds: half the cost of an uncontended mutex. A contender backs off, then yields, then
/// sleeps, because the holder may have been preempted. Do not hold it during a call that may block.
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
    // Exponential back-off: meanwhile the holder works on, with the lock and what it guards in its own processor's cache
    // (Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors", IEEE TPDS 1990).
    for (unsigned i = 0; i < 64u << std::min(tries, 2u); ++i) relax();
  }
  std::atomic<bool> locked_{false};
};

}  // namespace base
}  // namespace v0
}  // namespace wye
