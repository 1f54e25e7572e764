#include "scheduler/workers.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/text.hpp"
#include "scheduler/runner.hpp"

namespace wye::inline v0::scheduler {

void Workers::wake(base::Lock lock) noexcept {
  if (crew_.begin_return()) return;
  crew_.end_return();  // it does other things first
  if (call_locked()) {
    lock.unlock();  // otherwise the woken thread waits for the lock
    return crew_.wake();
  }
  if (!crew_.empty() || queue_.runs_locked() > 0) return;  // a thread that runs a job takes the next one
  // The system refuses a thread. The calling thread runs all queued jobs, and jobs that become
  // ready meanwhile.
  Instant now;
  while (!queue_.is_closing_locked()) {
    auto record = queue_.pop_locked();
    if (!record) return queue_.add_user_locked(0);
    run_popped(lock, std::move(record), false, now);
  }
}

/// Starts a worker if there is work that no worker is about to take. Returns true if the caller is
/// to wake a parked one.
bool Workers::call_locked() noexcept {
  // A worker notices when jobs in flight run out of time, and when a paused queue goes on.
  const bool needs_watch = queue_.active().in_flight() > 0 || queue_.ready().places().has_pauses();
  return crew_.call([this] { return has_work_locked(); }, needs_watch,
                    parts_.options.concurrent_jobs + queue_.ready().places().blocked() + 1,
                    [this] { work(); });
}

/// Runs a job that was taken from a queue, or that has returned, on this thread. `lock` is held
/// before and after.
/// `now`: the time, if the thread knows it; set to the time afterwards, if the thread has read it.
void Workers::run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                         Instant& now) noexcept {
  if (record->advance(State::queued, State::running)) {
    queue_.commit_locked(*record, now);
    queue_.begin_locked(*record);
  } else if (record->advance(State::returned, State::running)) {
    queue_.active().end_flight();
  } else if (record->state != State::abandoned || !record->attempt) {
    return;  // it has settled meanwhile
  }
  run_begun(lock, std::move(record), is_worker, now);
}

/// Runs a job that counts as running on this thread. `lock` is held before and after.
void Workers::run_begun(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                        Instant& now) noexcept {
  const std::uint16_t place = record->place;
  record->run_by = this_thread();
  if (is_worker && record->may_share && !record->attempt) queue_.take_batch_locked(*record);
  if (is_worker)
    wake(std::move(lock));
  else
    lock.unlock();
  ++jobs_on_this_thread;
  const Progress progress = runner_.run(*record, is_worker, now);
  record.reset();
  --jobs_on_this_thread;
  lock = queue_.hold();
  end_run_locked(place, progress);
}

/// Notes that this thread runs a job, for which `Queue::commit_locked` was called, no longer.
void Workers::end_run_locked(std::uint16_t place, Progress progress) noexcept {
  crew_.end_return();
  if (progress == Progress::in_flight) return queue_.add_user_locked(-1);  // `detach` has counted this thread
  queue_.end_run_locked(place);
  stopped_.wake_all();
  if (queue_.is_closing_locked()) crew_.wake_all();  // workers end with the last job in flight
  queue_.add_user_locked(0);
}

void Workers::work() noexcept {
  base::Lock lock = queue_.hold();
  crew_.join();
  Ready& ready = queue_.ready();
  ActiveJobs& active = queue_.active();
  const auto is_closed = [&] {
    return queue_.is_closing_locked() && active.in_flight() == 0 && !ready.has_returned();
  };
  const auto has_work = [&] { return is_closed() || crew_.is_waking() || has_work_locked(); };
  const auto* const manual = dynamic_cast<const ManualClock*>(&parts_.clock);
  Instant now;           // when the job before ended, unless the thread has waited since
  bool has_run = false;  // a job since it parked
  for (;;) {
    active.return_expired(parts_.clock, ready);
    if (ready.places().has_pauses()) ready.resume_due(Clock::steady().now());
    if (is_closed()) return;
    queue_.add_user_locked(1);
    const bool found = run_next(lock, now);
    queue_.add_user_locked(-1);
    has_run |= found;
    if (found) continue;
    now = {};
    if (parts_.store.is_due()) {
      lock.unlock();
      parts_.store.update();
      lock = queue_.hold();
      continue;
    }
    // A worker that was woken for a job that another thread has taken parks at once.
    if (std::exchange(has_run, false)) crew_.spin(lock, [&] { return ready.count() > 0; });
    const ManualClock* const wakes_it = active.in_flight() > 0 ? manual : nullptr;
    crew_.park(lock, std::min(ready.first_resume(), active.first_expiry()), wakes_it,
               [&] { return has_work() || (wakes_it && active.has_expired(parts_.clock)); });
  }
}

/// Runs or stages the next job, if there is one. `lock` is held before and after. `now`: as that of
/// `run_popped`.
bool Workers::run_next(base::Lock& lock, Instant& now) noexcept {
  Ready& ready = queue_.ready();
  if (ready.has_returned()) {
    run_popped(lock, std::static_pointer_cast<Record>(ready.pop_returned()), true, now);
  } else if (auto record = queue_.pop_locked()) {
    run_popped(lock, std::move(record), true, now);
  } else if (auto next = queue_.is_staging_locked() ? nullptr : ready.pop_to_stage()) {
    now = {};
    stage(lock, std::static_pointer_cast<Record>(std::move(next)), now);
  } else {
    return false;
  }
  return true;
}

/// Prepares the device of a job that waits for a lane. It keeps its place in the queue meanwhile:
/// if its turn comes, it starts here as soon as its device is prepared. `lock` is held before and
/// after.
void Workers::stage(base::Lock& lock, std::shared_ptr<Record> record, Instant& now) noexcept {
  if (!record->advance(State::queued, State::staging)) return;
  std::optional<Error> error;
  try {
    queue_.begin_stage_locked(record);
    wake(std::move(lock));
    const Bytes copied = parts_.preparer.prepare_ahead(*record, record->place - 1u);
    lock = queue_.hold();
    queue_.end_stage_locked(copied);
    if (queue_.is_closing_locked()) stopped_.wake_all();
  } catch (const std::bad_alloc&) {
    error = parts_.spare.out_of_memory;
  }
  if (std::exchange(record->is_due, false)) {
    if (record->advance(State::staging, State::running)) return run_begun(lock, std::move(record), true, now);
    return queue_.end_run_locked(record->place);  // abandoned
  }
  if (!record->advance(State::staging, State::queued)) return;  // abandoned
  if (queue_.is_closing_locked() && !error)
    error = error_or(parts_.spare.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} had not started when the scheduler was closed.", record->subject()));
    });
  wake(std::move(lock));
  // Calls that came while it was staged could not settle it.
  if (error) runner_.settle(*record, State::queued, std::move(error));
  if (record->stop) runner_.cancel(*record);
  if (record->start_by != Instant::max() && parts_.clock.now() >= record->start_by) runner_.expire(*record);
  record.reset();
  lock = queue_.hold();
}

bool Workers::run_if_room(base::Lock& lock, Record& record) noexcept {
  if (record.state != State::queued) return false;  // the thread that runs it may change it
  const bool nested = runs_job();
  const std::optional<Room> room = nested ? std::nullopt : queue_.ready().find_room(record);
  if (!nested && (!room || (record.tag_state && record.tag_state->is_full()))) return false;
  if (!record.advance(State::queued, State::running)) return false;
  queue_.begin_locked(record, !nested);
  queue_.ready().take_place(record, room.value_or(Room{}));
  if (room)
    queue_.commit_locked(record);
  else
    queue_.add_user_locked(1);
  record.run_by = this_thread();
  lock.unlock();
  ++jobs_on_this_thread;
  Instant now;
  const Progress progress = runner_.run(record, false, now);
  --jobs_on_this_thread;
  if (nested) return queue_.end_use(), true;
  lock = queue_.hold();
  end_run_locked(room->place, progress);
  wake(std::move(lock));
  return true;
}

void Workers::run_member(Record& record) noexcept {
  const std::uint16_t place = record.place;
  {
    const base::Lock lock = queue_.hold();
    queue_.commit_locked(record);
  }
  Instant now;
  const Progress progress = runner_.run(record, true, now);
  const base::Lock lock = queue_.hold();
  end_run_locked(place, progress);
}

bool Workers::requeue(Record& record, std::uint16_t line) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  base::Lock lock = queue_.hold();
  if (queue_.is_closing_locked() || record.state != State::running) return false;
  const std::uint16_t before = std::exchange(record.line, line);
  record.runs.times = nullptr;
  record.runs.committed = {};
  try {
    queue_.ready().push(keep);
  } catch (const std::bad_alloc&) {
    record.line = before;
    return false;
  }
  queue_.return_locked(record);
  wake(std::move(lock));
  if (keep->stop) runner_.cancel(*keep);  // a call that came while it ran could not settle it
  return true;
}

void Workers::add_room(int by) noexcept {
  base::Lock lock = queue_.hold();
  queue_.ready().places().add_blocked(by);
  if (by > 0) wake(std::move(lock));
}

void Workers::close() noexcept {
  const base::Lock lock = queue_.hold();
  queue_.close_locked();
  crew_.wake_all();
}

std::optional<std::vector<base::Worker>> Workers::await_stopped(Instant until) noexcept {
  base::Lock lock = queue_.hold();
  const std::uint32_t own = jobs_on_this_thread > 0 ? 1 : 0;
  if (stopped_.wait(lock, until, [&] {
        return has_abandoned_ || (queue_.runs_locked() <= own && !queue_.is_staging_locked());
      }))
    // Of a queue with abandoned jobs, some workers still run those, and are not joined.
    return has_abandoned_ ? std::vector<base::Worker>() : crew_.take();
  has_abandoned_ = true;
  stopped_.wake_all();
  return std::nullopt;
}

}  // namespace wye::scheduler
