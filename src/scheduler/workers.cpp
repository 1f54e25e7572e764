// The threads that run the jobs that are ready.
#include <algorithm>
#include <new>
#include <utility>

#include "base/text.hpp"
#include "scheduler/queue.hpp"
#include "scheduler/runner.hpp"

namespace wye::inline v0::scheduler {

/// Wakes or starts a worker if there is work, and unlocks. Each worker does the same before it runs
/// a job.
void Queue::wake_worker(base::Lock lock) noexcept {
  if (call_worker_locked()) {
    lock.unlock();  // otherwise the woken thread waits for the lock
    return crew_.wake();
  }
  if (!crew_.empty() || runs_ > 0) return;  // a thread that runs a job takes the next one
  // The system refuses a thread. The calling thread runs all queued jobs, and jobs that become
  // ready meanwhile.
  Instant now;
  while (!closing_) {
    auto record = pop_locked();
    if (!record) return note_quiet_locked();
    run_popped(lock, std::move(record), false, now);
  }
}

/// Starts a worker if there is work that no worker is about to take. Returns true if the caller is
/// to wake a parked one.
bool Queue::call_worker_locked() noexcept {
  // A worker notices when jobs in flight run out of time, and when a paused queue goes on.
  const bool needs_watch = active_.in_flight() > 0 || ready_.places().has_pauses();
  return crew_.call([this] { return has_work_locked(); }, needs_watch,
                    parts_.options.concurrent_jobs + ready_.places().blocked() + 1, [this] { work(); });
}

/// Runs a job that was taken from a queue, or that has returned, on this thread. `lock` is held
/// before and after.
/// `now`: the time, if the thread knows it; set to the time afterwards, if the thread has read it.
void Queue::run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                       Instant& now) noexcept {
  if (record->advance(State::queued, State::running)) {
    commit_locked(*record);
    begin_locked(*record, false);
  } else if (record->advance(State::returned, State::running)) {
    active_.end_flight();
  } else if (record->state != State::abandoned || !record->attempt) {
    return;  // it has settled meanwhile
  }
  run_begun(lock, std::move(record), is_worker, now);
}

/// Runs a job that counts as running on this thread. `lock` is held before and after.
void Queue::run_begun(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                      Instant& now) noexcept {
  record->run_by = this_thread();
  if (is_worker && record->may_share && !record->attempt) take_batch_locked(*record);
  if (is_worker)
    wake_worker(std::move(lock));
  else
    lock.unlock();
  ++jobs_on_this_thread;
  const Progress progress = runner_.run(*record, is_worker, now);
  record.reset();
  --jobs_on_this_thread;
  lock = hold();
  end_run_locked(progress);
}

/// Counts a job that a thread begins to run as committed to its place.
void Queue::commit_locked(Record& record) noexcept {
  ready_.places().commit(record.place);
  record.is_committed = true;
  ++runs_;
}

/// Counts a job, for which `commit_locked` was called, as a job that this thread runs no longer.
void Queue::end_run_locked(Progress progress) noexcept {
  crew_.end_return();
  if (progress == Progress::in_flight) {
    --users_;  // `detach` has counted this thread
  } else {
    --runs_;
    stopped_.wake_all();
    if (closing_) crew_.wake_all();  // workers end with the last job in flight
  }
  note_quiet_locked();
}

/// Takes the next job to run; null if there is none.
std::shared_ptr<Record> Queue::pop_locked() noexcept {
  for (;;) {
    auto record = std::static_pointer_cast<Record>(ready_.pop());
    if (!record || record->state != State::staging) return record;
    record->is_due = true;  // the thread that stages it runs it next
    commit_locked(*record);
    begin_locked(*record, false);
  }
}

/// Takes jobs that wait for the same device into the submission of a job that starts there. The
/// jobs that wait are divided among its lane and the free ones: none is taken that could have a
/// lane of its own.
void Queue::take_batch_locked(Record& leader) noexcept {
  constexpr Duration most_work = std::chrono::milliseconds(1);
  const std::uint32_t committed = ready_.places()[leader.place].committed;
  // The lanes of a device share it: a job takes longer while others run.
  const auto time_of = [&](const Waiting& job) -> std::optional<Duration> {
    const Duration mean = job.may_share ? job.mean_time() : Duration::zero();
    return mean != Duration::zero() ? std::optional(mean / committed) : std::nullopt;
  };
  const auto own = time_of(leader);
  if (!own) return;
  Duration work = *own;
  const std::size_t most =
      std::min<std::size_t>(parts_.options.batch_limit, ready_.jobs_per_lane(leader.place));
  const auto may_join = [&](const Waiting& next) {
    const auto time = time_of(next);
    return time && work + *time <= most_work;
  };
  std::uint8_t size = 1;
  for (Record* last = nullptr; size < most;) {
    auto next = std::static_pointer_cast<Record>(ready_.pop_for(leader, may_join));
    if (!next) break;
    if (!next->advance(State::queued, State::running)) continue;  // it has been cancelled
    work += *time_of(*next);
    begin_locked(*next, false);
    Record* const member = next.get();
    member->self_listed = std::move(next);
    member->next_listed = nullptr;
    if (last)
      last->next_listed = member;
    else
      leader.batch = member;
    last = member;
    ++size;
  }
  if (size == 1) return;
  leader.leads_batch = true;
  for (Record* one = &leader; one; one = one->next_in_batch()) one->batch_size = size;
}

void Queue::work() noexcept {
  base::Lock lock = hold();
  crew_.join();
  const auto is_closed = [&] { return closing_ && active_.in_flight() == 0 && !ready_.has_returned(); };
  const auto has_work = [&] { return is_closed() || crew_.is_waking() || has_work_locked(); };
  const auto* const manual = dynamic_cast<const ManualClock*>(&parts_.clock);
  Instant now;  // when the job before ended, unless the thread has waited since
  for (;;) {
    if (!has_work()) {
      now = {};
      crew_.spin(lock, [&] { return ready_.count() > 0; });
    }
    const ManualClock* const wakes_it = active_.in_flight() > 0 ? manual : nullptr;
    crew_.park(lock, std::min(ready_.first_resume(), active_.first_expiry()), wakes_it,
               [&] { return has_work() || (wakes_it && active_.has_expired(parts_.clock)); });
    active_.return_expired(parts_.clock, ready_);
    if (ready_.places().has_pauses()) ready_.resume_due(Clock::steady().now());
    if (is_closed()) return;
    ++users_;
    if (ready_.has_returned()) {
      run_popped(lock, std::static_pointer_cast<Record>(ready_.pop_returned()), true, now);
    } else if (auto record = pop_locked()) {
      run_popped(lock, std::move(record), true, now);
    } else if (auto next = staging_ ? nullptr : ready_.pop_to_stage()) {
      now = {};
      stage(lock, std::static_pointer_cast<Record>(std::move(next)), now);
    }
    --users_;
    note_quiet_locked();
  }
}

/// Prepares the device of a job that waits for a lane. It keeps its place in the queue meanwhile:
/// if its turn comes, it starts here as soon as its device is prepared. `lock` is held before and
/// after.
void Queue::stage(base::Lock& lock, std::shared_ptr<Record> record, Instant& now) noexcept {
  if (!record->advance(State::queued, State::staging)) return;
  std::optional<Error> error;
  try {
    ready_.stage(record);
    staging_ = record.get();
    wake_worker(std::move(lock));
    const Bytes copied = parts_.preparer.prepare_ahead(*record, record->place - 1u);
    lock = hold();
    if (copied != Bytes{}) ledger_.note_prefetch(copied);
    staging_ = nullptr;
    if (closing_) stopped_.wake_all();
  } catch (const std::bad_alloc&) {
    error = parts_.spare.out_of_memory;
  }
  if (std::exchange(record->is_due, false)) {
    if (record->advance(State::staging, State::running)) return run_begun(lock, std::move(record), true, now);
    --runs_;  // abandoned
    return;
  }
  if (!record->advance(State::staging, State::queued)) return;  // abandoned
  if (closing_ && !error)
    error = error_or(parts_.spare.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} had not started when the scheduler was closed.", record->subject()));
    });
  wake_worker(std::move(lock));
  // Calls that came while it was staged could not settle it.
  if (error) runner_.settle(*record, State::queued, std::move(error));
  if (record->stop) runner_.cancel(*record);
  if (record->start_by != Instant::max() && parts_.clock.now() >= record->start_by) runner_.expire(*record);
  record.reset();
  lock = hold();
}

bool Queue::run_if_room(base::Lock& lock, Record& record) noexcept {
  const bool nested = runs_job();
  const std::optional<std::uint16_t> place = nested ? std::nullopt : ready_.find_room(record);
  if (!nested && (!place || (record.tag_state && record.tag_state->is_full()))) return false;
  if (!record.advance(State::queued, State::running)) return false;
  begin_locked(record, nested);
  record.place = place.value_or(on_threads);
  if (place)
    commit_locked(record);
  else
    ++users_;
  record.run_by = this_thread();
  lock.unlock();
  ++jobs_on_this_thread;
  Instant now;
  const Progress progress = runner_.run(record, false, now);
  --jobs_on_this_thread;
  if (nested) return end_use(), true;
  lock = hold();
  end_run_locked(progress);
  wake_worker(std::move(lock));
  return true;
}

void Queue::run_member(Record& record) noexcept {
  {
    const base::Lock lock = hold();
    commit_locked(record);
  }
  Instant now;
  const Progress progress = runner_.run(record, true, now);
  const base::Lock lock = hold();
  end_run_locked(progress);
}

}  // namespace wye::scheduler
