#include "scheduler/queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/text.hpp"
#include "scheduler/core.hpp"
#include "scheduler/runner.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns the error of a job that cannot start by its `start_by`, if the run times of jobs before
/// it are known; otherwise nothing. Counts the jobs that wait and would run before it. Running jobs
/// may end at any time, so they do not count.
std::optional<Error> unreachable(const Record& record, const Ready& ready, const Parts& parts) noexcept {
  if (record.start_by == Instant::max()) return std::nullopt;
  const Ready::Expected before = ready.before(record);
  if (before.jobs == 0) return std::nullopt;
  const Duration left = record.start_by - parts.clock.now();
  const std::uint32_t at_a_time = ready.at_a_time(record.line);
  if (before.run_time / at_a_time <= left) return std::nullopt;
  return error_or(parts.spare.timed_out, [&] {
    return Error(
        Errc::timed_out,
        base::text("{} was refused: {} jobs run before it, {:.3g} ms each and {} at a time, and it is "
                   "to start within {:.3g} ms.",
                   record.subject(), before.jobs, milliseconds(before.run_time) / before.jobs, at_a_time,
                   std::max(0.0, milliseconds(left))));
  });
}

}  // namespace

Queue::Queue(Parts& parts, Runner& runner)
    : parts_(parts),
      runner_(runner),
      ready_(
          parts.options, parts.pool->options(), parts.pool->fleet().limit(), parts.times,
          [accounts = &parts.pool->accounts()](std::size_t device) { return accounts->of(device)->held(); }),
      ledger_(parts.options.recent, parts.pool->fleet().limit()) {
  ready_.places().add(parts.placer.table());
}

void Queue::add_places(const Table& table) noexcept {
  const base::Lock lock = hold();
  ready_.places().add(table);
}

/// Keeps the number of waiting jobs below its limit: waits, refuses `record` or drops another job,
/// as `when_full` says. Releases `lock` meanwhile. Returns the error of a job that is refused.
std::optional<Error> Queue::find_room(base::Lock& lock, const Record& record) noexcept {
  const SchedulerOptions& options = parts_.options;
  const auto has_room = [&] { return closing_ || queued_ < options.max_queued; };
  if (options.when_full == WhenFull::wait && !has_room()) {
    ++waiting_for_room_;
    const bool in_time = room_.wait(lock, parts_.clock, record.start_by, has_room);
    --waiting_for_room_;
    if (in_time) return std::nullopt;
    return error_or(parts_.spare.timed_out, [&] {
      return Error(
          Errc::timed_out,
          base::text("{} did not start in time: the limit of waiting jobs was reached (max_queued = {}).",
                     record.subject(), options.max_queued));
    });
  }
  while (!has_room()) {
    const std::shared_ptr<Record> last = options.when_full == WhenFull::drop_lowest
                                             ? std::static_pointer_cast<Record>(ready_.take_last(record))
                                             : nullptr;
    if (!last)
      return error_or(parts_.spare.full, [&] {
        return Error(Errc::over_budget,
                     base::text("{} was refused: the limit of waiting jobs is reached (max_queued = {}).",
                                record.subject(), options.max_queued));
      });
    lock.unlock();
    runner_.settle(*last, State::queued, error_or(parts_.spare.full, [&] {
      return Error(
          Errc::over_budget,
          base::text("{} was dropped for {}: the limit of waiting jobs is reached (max_queued = {}).",
                     last->subject(), record.object(), options.max_queued));
    }));
    lock.lock();
  }
  return std::nullopt;
}

std::optional<Error> Queue::enter(base::Lock& lock, Record& record, bool is_bounded,
                                  std::optional<Error> refused) noexcept {
  try {
    record.tag_state = ready_.tags().enter(record.tag());
  } catch (const std::bad_alloc&) {
    refused = parts_.spare.out_of_memory;
  }
  if (is_bounded && !refused) refused = find_room(lock, record);
  record.sequence = ++sequence_;
  ledger_.note_submission();
  ++queued_;
  try {
    record.type_metrics = &ledger_.row_of(record.job.type());
  } catch (const std::bad_alloc&) {
    refused = parts_.spare.out_of_memory;
  }
  if (closing_)
    refused = error_or(parts_.spare.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} was submitted after the scheduler was closed.", record.subject()));
    });
  return refused;
}

void Queue::note_without_memory() noexcept {
  const base::Lock lock = hold();
  ledger_.note_submission();
  ledger_.note_without_result(nullptr);
}

void Queue::push(base::Lock lock, const std::shared_ptr<Record>& record) noexcept {
  std::optional<Error> error;
  if (closing_) {
    error = error_or(parts_.spare.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} was not ready when the scheduler closed.", record->subject()));
    });
  } else if (parts_.options.refuse_unreachable && (error = unreachable(*record, ready_, parts_))) {
    // settles below
  } else {
    try {
      ready_.rank(*record);
      ready_.push(record);
    } catch (const std::bad_alloc&) {
      error = parts_.spare.out_of_memory;
    }
  }
  if (error) {
    lock.unlock();
    runner_.settle(*record, State::queued, std::move(error));
    return;
  }
  wake_worker(std::move(lock));
}

bool Queue::requeue(Record& record, std::uint16_t line) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  base::Lock lock = hold();
  if (closing_ || record.state != State::running) return false;
  const std::uint16_t before = std::exchange(record.line, line);
  record.time_row = nullptr;
  try {
    ready_.push(keep);
  } catch (const std::bad_alloc&) {
    record.line = before;
    return false;
  }
  return_locked(record);
  wake_worker(std::move(lock));
  if (keep->stop) runner_.cancel(*keep);  // a call that came while it ran could not settle it
  return true;
}

/// Counts a record, which this thread runs which is in its line again, as waiting.
void Queue::return_locked(Record& record) noexcept {
  end_active_locked(record);
  record.place = on_threads;
  record.run_by = nullptr;
  ++queued_;
  TagState* const tag = record.tag_state;
  if (std::exchange(record.counts_for_tag, false)) --tag->running;
  record.state = State::queued;  // an abandoned record is not here: that needs the lock
  if (tag && !closing_) ready_.release_held(*tag);
}

/// Counts and lists a job that this thread runs next.
void Queue::begin_locked(Record& record, bool is_nested) noexcept {
  leave_line_locked(record);
  ready_.observe(record);
  record.counts_for_tag = record.tag_state && !is_nested;
  if (record.counts_for_tag) ++record.tag_state->running;
  active_.add(record);
}

/// Counts a job that settles, or waits again, as a job that runs no longer.
void Queue::end_active_locked(Record& record) noexcept {
  active_.remove(record);
  if (std::exchange(record.is_committed, false)) ready_.places().uncommit(record.place);
}

/// Counts a job that waits no longer.
void Queue::leave_line_locked(Record& record) noexcept {
  --queued_;
  ready_.leave(record);
  if (waiting_for_room_ > 0 && queued_ < parts_.options.max_queued) room_.wake_one();
}

void Queue::leave(Record& record, State from, const Settled& job) noexcept {
  const base::Lock lock = hold();
  ledger_.note(job);
  if (from == State::running) {
    Places& places = ready_.places();
    if (record.is_committed) places.resume(places[record.place].pause);
    end_active_locked(record);
    if (jobs_on_this_thread == 1) crew_.begin_return();  // it takes the first of the followers
  } else {
    leave_line_locked(record);
    ++users_;
  }
  if (TagState* const tag = record.tag_state) {
    const Duration took = (record.settled_at - record.started) / record.batch_size;
    tag->running -= record.counts_for_tag ? 1 : 0;
    ready_.tags().leave(*tag, from == State::running ? took : Duration::zero());
    if (!record.error) tag->pause.has_no_memory = false;
    if (closing_)
      ready_.places().resume(tag->pause);
    else
      ready_.resume(*tag);
    if (!closing_) ready_.release_held(*tag);
  }
  if (!record.error && !record.has_failed) ready_.places()[record.place].pause.has_no_memory = false;
}

void Queue::call_other_worker() noexcept {
  base::Lock lock = hold();
  crew_.end_return();
  wake_worker(std::move(lock));
}

void Queue::pause_place(const Record& record) noexcept {
  constexpr Duration pause = std::chrono::milliseconds(100);
  const base::Lock lock = hold();
  Places& places = ready_.places();
  const bool is_of_group =
      record.line == shared_line(parts_.pool->fleet().limit(), places[record.place].group - 1u);
  places.refuse(record.place, is_of_group, Clock::steady().now() + pause);
}

void Queue::make_room(int by) noexcept {
  base::Lock lock = hold();
  ready_.places().add_blocked(by);
  if (by > 0) wake_worker(std::move(lock));
}

void Queue::begin_use() noexcept {
  const base::Lock lock = hold();
  ++users_;
}

void Queue::end_use() noexcept {
  const base::Lock lock = hold();
  --users_;
  note_quiet_locked();
}

bool Queue::is_quiet_locked() noexcept {
  return queued_ == 0 && active_.count() == 0 && users_ == 0 && callbacks_ == 0 && ready_.count() == 0 &&
         runs_ == 0;
}

bool Queue::is_quiet() noexcept {
  const base::Lock lock = hold();
  return is_quiet_locked();
}

Result<void> Queue::await_quiet(const Clock& clock, Instant until) {
  base::Lock lock = hold();
  ++quiescing_;
  if (!is_quiet_locked()) {
    wake_worker(std::move(lock));  // queues may have entries of jobs that have settled
    lock = hold();
  }
  const bool in_time = quiet_.wait(lock, clock, until, [this] { return is_quiet_locked(); });
  --quiescing_;
  if (in_time) return {};
  const std::uint32_t left = queued_ + active_.count();
  return Error(
      Errc::timed_out,
      left > 0 ? base::text("{} jobs were left when the deadline of quiescing passed: {} waited, {} ran.",
                            left, queued_, active_.count())
               : base::text("0 jobs were left when the deadline of quiescing passed, but threads still used "
                            "settled jobs ({} submissions of them were in flight).",
                            callbacks_));
}

void Queue::begin_close() noexcept {
  const base::Lock lock = hold();
  closing_ = true;
  crew_.wake_all();
  room_.wake_all();
}

bool Queue::is_closing() const noexcept {
  const base::Lock lock = hold();
  return closing_;
}

std::shared_ptr<Record> Queue::take_any() noexcept {
  const base::Lock lock = hold();
  return std::static_pointer_cast<Record>(ready_.take_any());
}

std::optional<std::vector<base::Worker>> Queue::await_stopped(Instant until) noexcept {
  base::Lock lock = hold();
  const std::uint32_t own = jobs_on_this_thread > 0 ? 1 : 0;
  if (stopped_.wait(lock, until, [&] { return has_abandoned_ || (runs_ <= own && !staging_); }))
    // Of a queue with abandoned jobs, some workers still run those, and are not joined.
    return has_abandoned_ ? std::vector<base::Worker>() : crew_.take();
  has_abandoned_ = true;
  stopped_.wake_all();
  return std::nullopt;
}

std::shared_ptr<Record> Queue::abandon_next(std::shared_ptr<device::Timeline>& polled) noexcept {
  polled.reset();
  const base::Lock lock = hold();
  if (staging_ && staging_->advance(State::staging, State::abandoned)) {
    if (staging_->is_due)
      end_active_locked(*staging_);
    else
      leave_line_locked(*staging_);
    ledger_.note_without_result(staging_->type_metrics);
    ++users_;
    return staging_->shared_from_this();
  }
  for (Record* record = active_.last(); record; record = record->active_next) {
    if (record->run_by == this_thread()) continue;  // its host function closes the scheduler
    if (record->advance(State::in_flight, State::abandoned)) {
      record->is_unattended = true;
      polled = record->attempt->lane().timeline();
      active_.end_flight();
    } else if (record->advance(State::returned, State::abandoned)) {
      active_.end_flight();
    } else if (!record->advance(State::running, State::abandoned)) {
      continue;  // it has just settled
    }
    end_active_locked(*record);
    ledger_.note_without_result(record->type_metrics);
    ++users_;
    return record->shared_from_this();
  }
  return nullptr;
}

SchedulerMetrics Queue::metrics_locked() const {
  SchedulerMetrics metrics = ledger_.metrics(parts_.pool->fleet());
  metrics.queued = queued_;
  metrics.running = active_.count();
  return metrics;
}

std::vector<Placement> Queue::recent() const {
  const base::Lock lock = hold();
  return ledger_.recent(parts_.pool->fleet());
}

}  // namespace wye::scheduler
