#include "device/timeline_waiter.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/process.hpp"
#include "base/worker.hpp"
#include "device/scheduled_timeline.hpp"

namespace wye::inline v0::device {

/// Outlives its device if the thread drops the last handle of the device.
struct TimelineWaiter::Shared {
  std::string name;
  Sleep sleep = Sleep::in_driver;
  std::mutex mutex;
  base::Gate notified;
  bool has_news = false;
  bool is_ending = false;
  std::optional<base::Worker> thread;
  ScheduledTimeline* first = nullptr;
  ScheduledTimeline* last = nullptr;
  std::size_t count = 0;
  const ScheduledTimeline* polled = nullptr;  // the thread uses it without the lock
  base::Gate unused;
  bool holds = false;        // the thread may hold the last handles of timelines
  std::uint64_t rounds = 0;  // ended: it held none at the end of each
  base::Gate released;
  bool has_ended = false;
  base::Gate ended;

  void append(ScheduledTimeline& timeline) noexcept {
    timeline.is_listed_ = true;
    timeline.before_ = last;
    timeline.next_ = nullptr;
    (last ? last->next_ : first) = &timeline;
    last = &timeline;
    ++count;
  }
  void take_out(ScheduledTimeline& timeline) noexcept {
    timeline.is_listed_ = false;
    (timeline.before_ ? timeline.before_->next_ : first) = timeline.next_;
    (timeline.next_ ? timeline.next_->before_ : last) = timeline.before_;
    --count;
  }
  /// Polls every timeline once, without the lock. Returns whether a callback was called.
  bool poll(base::Lock& lock, std::shared_ptr<ScheduledTimeline>& in_flight) noexcept;
  void run() noexcept;
  void end_round() noexcept {
    holds = false;
    ++rounds;
    released.wake_all();
  }
  /// Calls `f`, which uses a timeline, without the lock.
  template <class F>
  void unlocked(base::Lock& lock, const ScheduledTimeline& timeline, F f) noexcept {
    polled = &timeline;
    lock.unlock();
    f();
    lock.lock();
    polled = nullptr;
    unused.wake_all();
  }
};

namespace {
thread_local const void* polling_for = nullptr;  // the waiter that runs on this thread
}

bool TimelineWaiter::Shared::poll(base::Lock& lock, std::shared_ptr<ScheduledTimeline>& in_flight) noexcept {
  bool called = false;
  for (std::size_t rest = count; rest > 0 && first; --rest) {
    ScheduledTimeline& listed = *first;
    take_out(listed);
    append(listed);
    // Null if another thread runs its destructor, which waits for the lock.
    std::shared_ptr<ScheduledTimeline> timeline = listed.weak_from_this().lock();
    if (!timeline) continue;
    unlocked(lock, *timeline, [&] { called |= timeline->call_known(); });
    const std::uint64_t value = timeline->first_callback();
    if (value == ScheduledTimeline::no_value) {
      if (timeline->is_listed_) take_out(*timeline);
    } else if (value <= timeline->scheduled() && (!in_flight || in_flight->is_foreign())) {
      timeline.swap(in_flight);
    }
    lock.unlock();
    timeline.reset();  // may end the timeline, and its device
    lock.lock();
  }
  return called;
}

void TimelineWaiter::Shared::run() noexcept {
  constexpr Duration longest = std::chrono::milliseconds(1);
  const Duration shortest = std::chrono::microseconds(sleep == Sleep::in_driver ? 50 : 20);
  polling_for = this;
  base::Lock lock(mutex);
  Instant begin = Clock::steady().now();
  while (!is_ending) {
    has_news = false;
    holds = true;
    std::shared_ptr<ScheduledTimeline> in_flight;
    const bool called = poll(lock, in_flight);
    const auto woken = [&] { return has_news || is_ending; };
    if (!in_flight) {
      end_round();
      notified.wait(lock, Instant::max(), woken);
      begin = Clock::steady().now();
      continue;
    }
    const Instant now = Clock::steady().now();
    if (called) begin = now;
    const Instant until = now + std::clamp((now - begin) / 8, shortest, longest);
    const std::uint64_t value = in_flight->first_callback();
    bool has_slept = woken();
    if (!has_slept && sleep == Sleep::in_driver && !in_flight->is_foreign()) {
      unlocked(lock, *in_flight, [&] {
        try {
          const auto waited = in_flight->wait(value, until);
          has_slept = waited || Clock::steady().now() >= until;
        } catch (...) {  // no memory for the answer
        }
      });
    }
    if (!has_slept) notified.wait(lock, until, woken);
    lock.unlock();
    in_flight.reset();  // may end the timeline, and its device
    lock.lock();
    end_round();
  }
  has_ended = true;
  ended.wake_all();
}

/// Ends threads when the process ends. Made after the drivers, it is destroyed before them.
class TimelineWaiter::AtExit {
 public:
  static AtExit& only() {
    static AtExit only;
    return only;
  }
  void add(const std::shared_ptr<Shared>& waiter) {
    const std::lock_guard lock(mutex_);
    if (std::find(waiters_.begin(), waiters_.end(), waiter) == waiters_.end()) waiters_.push_back(waiter);
  }
  ~AtExit() {
    if (origin_.is_inherited()) return;
    const Instant until = Clock::steady().now() + std::chrono::seconds(1);
    for (const std::shared_ptr<Shared>& waiter : waiters_) {
      base::Lock lock(waiter->mutex);
      waiter->is_ending = true;
      waiter->notified.wake_one();
      if (waiter->thread) waiter->ended.wait(lock, until, [&] { return waiter->has_ended; });
      // Not joined: the driver may not return, and a device that is never destroyed keeps it.
    }
  }

 private:
  const base::Origin origin_{};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Shared>> waiters_;
};

TimelineWaiter::TimelineWaiter(std::string thread_name, Sleep sleep) : shared_(std::make_shared<Shared>()) {
  shared_->name = std::move(thread_name);
  shared_->sleep = sleep;
}

Result<void> TimelineWaiter::start() {
  const base::Lock lock(shared_->mutex);
  if (shared_->thread || shared_->is_ending) return {};
  auto started = base::Worker::start(shared_->name, [keep = shared_] { keep->run(); });
  if (!started) return std::move(started).error();
  shared_->thread.emplace(*std::move(started));
  return {};
}

void TimelineWaiter::add(ScheduledTimeline& timeline) noexcept {
  const base::Lock lock(shared_->mutex);
  if (!timeline.is_listed_) shared_->append(timeline);
  shared_->has_news = true;
  shared_->notified.wake_one();
}

void TimelineWaiter::remove(ScheduledTimeline& timeline) noexcept {
  base::Lock lock(shared_->mutex);
  if (timeline.is_listed_) shared_->take_out(timeline);
  shared_->unused.wait(lock, Instant::max(), [&] { return shared_->polled != &timeline; });
}

void TimelineWaiter::await_release() noexcept {
  if (polling_for == shared_.get()) return;
  base::Lock lock(shared_->mutex);
  const std::uint64_t before = shared_->rounds;
  shared_->released.wait(lock, Instant::max(), [&] { return !shared_->holds || shared_->rounds != before; });
}

void TimelineWaiter::notify() noexcept {
  const base::Lock lock(shared_->mutex);
  if (!shared_->first) return;
  shared_->has_news = true;
  shared_->notified.wake_one();
}

void TimelineWaiter::end() noexcept {
  std::optional<base::Worker> thread;
  {
    const base::Lock lock(shared_->mutex);
    shared_->is_ending = true;
    shared_->notified.wake_one();
    if (shared_->thread) thread.emplace(*std::move(shared_->thread));
    shared_->thread.reset();
  }
}

void TimelineWaiter::end_at_exit() noexcept try {
  AtExit::only().add(shared_);
} catch (const std::bad_alloc&) {  // the thread runs on
}

}  // namespace wye::device
