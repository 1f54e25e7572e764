#include <wye/base/clock.hpp>

#include <cstdint>
#include <mutex>
#include <new>
#include <thread>

#include "base/gate.hpp"
#include "base/process.hpp"

namespace wye::inline v0 {
namespace base {

/// The gates of threads that are parked until an instant of a ManualClock.
class ClockRegistry {
 public:
  void add(WokenByClock& one) noexcept {
    const std::lock_guard lock(mutex_);
    one.next_ = first_;
    if (first_) first_->before_ = &one;
    first_ = &one;
  }
  void remove(const WokenByClock& one) noexcept {
    const std::lock_guard lock(mutex_);
    (one.before_ ? one.before_->next_ : first_) = one.next_;
    if (one.next_) one.next_->before_ = one.before_;
  }
  /// Wakes the gates of `clock`. A thread that registers holds the mutex of its gate, so this one
  /// only tries that mutex while it holds the registry's. The mutex is held while the gate is
  /// woken: otherwise a thread that is about to park would miss it.
  void wake(const ManualClock& clock) noexcept {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = ++rounds_;
    for (bool are_all_woken = false;;) {
      are_all_woken = true;
      for (WokenByClock* one = first_; one; one = one->next_) {
        if (one->clock_ != &clock || one->round_ >= round) continue;
        if (const std::unique_lock held(one->mutex_, std::try_to_lock); held) {
          one->gate_.wake_all();
          one->round_ = round;
        } else {
          are_all_woken = false;
        }
      }
      if (are_all_woken) return;
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  WokenByClock* first_ = nullptr;
  std::uint64_t rounds_ = 0;
};

namespace {
constinit PerProcess<ClockRegistry> clock_registry;
}  // namespace

WokenByClock::WokenByClock(const ManualClock& clock, std::mutex& mutex, Gate& gate) noexcept
    : clock_(&clock), mutex_(mutex), gate_(gate) {
  clock_registry.get().add(*this);
}

WokenByClock::~WokenByClock() { clock_registry.get().remove(*this); }

}  // namespace base

namespace {

class SteadyClock final : public Clock {
 public:
  Instant now() const noexcept override { return std::chrono::steady_clock::now(); }
};

}  // namespace

Clock::~Clock() = default;

const Clock& Clock::steady() noexcept {
  // Never destroyed, so that objects destroyed after `main` can still read it.
  alignas(SteadyClock) static std::byte storage[sizeof(SteadyClock)];
  static const Clock& clock = *new (storage) SteadyClock;
  return clock;
}

Instant ManualClock::now() const noexcept { return Instant(Duration(nanoseconds_.load())); }

void ManualClock::advance(Duration by) noexcept {
  nanoseconds_.fetch_add(by.count());
  base::clock_registry.get().wake(*this);
}

}  // namespace wye
