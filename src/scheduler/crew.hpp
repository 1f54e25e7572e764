#pragma once
/// The threads of a scheduler.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/worker.hpp"

namespace wye::inline v0::scheduler {

/// The jobs that the calling thread runs. A job that waits for another job runs it on top of itself
/// without counting against `concurrent_jobs`: otherwise that many jobs that each wait for one more
/// would deadlock.
extern constinit thread_local int jobs_on_this_thread;
/// Returns whether the calling thread runs a job, or a part of one as a thread of the CPU team.
bool runs_job() noexcept;
/// Returns the number of the calling thread, from 1.
std::uint32_t this_thread() noexcept;

/// Workers, which are started when they are first needed and park when there is nothing to do. One
/// of them is woken at a time: it wakes the next one if there is more work.
/// Threads: under the mutex of its scheduler, but for `wake`.
class Crew {
 public:
  /// Has a worker take work. `has_work()` is called only if a worker could take it and none is about
  /// to look for work; even if it returns false, a worker has to park if `needs_watch`: it notices
  /// when time passes. A new worker, of which there are at most `most`, runs `work`. Returns whether
  /// the caller is to call `wake` once it has released the mutex.
  template <class HasWork, class Work>
  bool call(HasWork has_work, bool needs_watch, std::size_t most, Work work) noexcept {
    if (is_waking_ || spinning_ > 0 || returning_ > 0) return false;
    if (parked_ == 0 && workers_.size() >= most) return false;
    if (!has_work() && (!needs_watch || parked_ > 0)) return false;
    if (parked_ > 0) return is_waking_ = true;
    start(std::move(work));
    return false;
  }
  /// Returns the same if a worker is parked for longer than `until`.
  bool call_for(Instant until) noexcept {
    return !is_waking_ && parked_ > 0 && until < watched_until_ && (is_waking_ = true);
  }
  void wake() noexcept { gate_.wake_one(); }
  void wake_all() noexcept { gate_.wake_all(); }
  bool empty() const noexcept { return workers_.empty(); }
  /// Returns the workers, to be joined without the mutex.
  std::vector<base::Worker> take() noexcept { return std::exchange(workers_, {}); }

  // Of a worker.

  /// Makes the calling thread one of the workers.
  void join() noexcept { this_worker.crew = this; }
  /// While it exists, jobs become ready because of a job that the calling thread has settled, and it
  /// calls no function of the application before it looks for work.
  class Release {
   public:
    explicit Release(bool looks_next) noexcept { this_worker.releases = looks_next; }
    Release(const Release&) = delete;
    ~Release() { this_worker.releases = false; }
  };
  /// Returns whether the calling thread, a worker with a `Release`, takes a job that has become ready
  /// when it looks for work: `call` calls no other worker until `end_return`.
  bool begin_return() noexcept {
    if (this_worker.crew != this || !this_worker.releases) return false;
    if (!std::exchange(this_worker.is_returning, true)) ++returning_;
    return true;
  }
  std::uint32_t returning() const noexcept { return returning_; }
  void end_return() noexcept {
    if (this_worker.crew == this && std::exchange(this_worker.is_returning, false)) --returning_;
  }
  /// Returns whether a worker was called and has not left `park` yet.
  bool is_waking() const noexcept { return is_waking_; }
  /// Polls `ready()`, without the mutex, for as long as parking would cost.
  template <class Ready>
  void spin(base::Lock& lock, Ready ready) {
    ++spinning_;
    (void)base::seen_before_parking(lock, ready);
    --spinning_;
  }
  /// Parks until `ready()`, or until `until` of the steady clock. `manual`: null, or a clock that
  /// wakes it.
  template <class Ready>
  void park(base::Lock& lock, Instant until, const ManualClock* manual, Ready ready) {
    ++parked_;
    watched_until_ = std::min(watched_until_, until);
    {
      std::optional<base::WokenByClock> woken;
      if (manual) woken.emplace(*manual, *lock.mutex(), gate_);
      gate_.wait(lock, until, ready);
    }
    watched_until_ = Instant::max();
    --parked_;
    is_waking_ = false;
  }

 private:
  struct ThisWorker {
    const Crew* crew = nullptr;  // null: the thread is no worker
    bool releases = false;
    bool is_returning = false;
  };
  static constinit thread_local ThisWorker this_worker;

  template <class Work>
  void start(Work work) noexcept {
    try {
      workers_.reserve(workers_.size() + 1);
      auto worker = base::Worker::start("wye-jobs", std::move(work));
      if (worker) workers_.push_back(std::move(*worker));
    } catch (const std::bad_alloc&) {  // like a thread that the system refuses
    }
  }

  std::vector<base::Worker> workers_;
  std::uint32_t parked_ = 0;
  std::uint32_t spinning_ = 0;   // before they park
  std::uint32_t returning_ = 0;  // to take a follower of a job that has settled
  bool is_waking_ = false;
  Instant watched_until_ = Instant::max();  // until when a parked worker waits
  base::Gate gate_;
};

}  // namespace wye::scheduler
