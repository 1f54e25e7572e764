#pragma once
/// Park and wake.
#include <wye/base/clock.hpp>

#include <condition_variable>
#include <mutex>

namespace wye {
inline namespace v0 {
namespace base {

using Lock = std::unique_lock<std::mutex>;

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
  /// Parks until `ready()` or `until`; false where it gave up. `lock` is held whenever `ready` is asked.
  template <class Ready>
  bool wait(Lock& lock, Instant until, Ready ready) {
    if (until == Instant::max()) return changed_.wait(lock, ready), true;
    return changed_.wait_until(lock, until, ready);
  }
  void wake_one() noexcept { changed_.notify_one(); }
  void wake_all() noexcept { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace base
}  // namespace v0
}  // namespace wye
