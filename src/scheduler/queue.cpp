#include "scheduler/queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/text.hpp"
#include "scheduler/core.hpp"
#include "scheduler/runner.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns the error of a job that no device starts by its `start_by`, as expected.
Error unreachable(const Record& record, const Start& start, Duration left, const Parts& parts) noexcept {
  return error_or(parts.spare.timed_out, [&] {
    const Expected& before = start.before;
    const std::string device =
        start.at == on_threads ? "" : base::text(" on '{}'", parts.pool->fleet().info(start.at - 1u).id);
    const std::string waiting =
        before.jobs == 0
            ? ""
            : base::text(" ({} jobs run before it, {:.3g} ms each and {} at a time)", before.jobs,
                         milliseconds(before.run_time) / before.jobs, start.at_a_time);
    return Error(Errc::timed_out,
                 base::text("{} was refused: it is expected to start after {:.3g} ms{}{}, and it is to start "
                            "within {:.3g} ms.",
                            record.subject(), milliseconds(start.after()), device, waiting,
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
      ledger_(parts.pool->fleet().limit()) {
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
  if (!has_room()) parts_.pool->journal().emit(base::QueueFull{.limit = options.max_queued});
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
    record.type_row = &ledger_.row_of(record.job.type());
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

std::optional<Error> Queue::add_locked(const std::shared_ptr<Record>& record) noexcept {
  if (closing_)
    return error_or(parts_.spare.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} was not ready when the scheduler closed.", record->subject()));
    });
  if (parts_.options.refuse_unreachable && record->start_by != Instant::max())
    if (auto error = find_start_locked(*record)) return error;
  try {
    ready_.rank(*record);
    ready_.push(record);
  } catch (const std::bad_alloc&) {
    return parts_.spare.out_of_memory;
  }
  return std::nullopt;
}

/// Has a job with a `start_by` prefer the devices that start it in time, as expected, if those that take
/// it do not. Returns its error if no device does.
std::optional<Error> Queue::find_start_locked(Record& record) noexcept {
  const Instant now = parts_.clock.now();
  const Duration left = record.start_by - now;
  find_room_times_locked(now);
  const Start start = ready_.find_start(record, left);
  if (start.after() > left) return unreachable(record, start, left, parts_);
  if (!start.is_home && start.at <= 64) {
    record.preferred = std::uint64_t{1} << (start.at - 1);
    record.waits.is_due_here = true;
  }
  return std::nullopt;
}

Foreseen Queue::foresee_locked(const Record& record) noexcept {
  find_room_times_locked(parts_.clock.now());
  return ready_.foresee(record);
}

/// Finds the time until a place has room.
void Queue::find_room_times_locked(Instant now) noexcept {
  Places& places = ready_.places();
  const auto shared = [&](std::uint16_t place) { return places.is_on_threads(place) ? on_threads : place; };
  for (std::uint16_t p = 0; p < places.size(); ++p) places[p].until_room = Duration::max();
  for (const Record* job = active_.last(); job; job = job->active_next) {
    if (!job->is_committed) continue;
    Duration& first = places[shared(job->place)].until_room;
    first = std::min(first, std::max(job->runs.ends - now, Duration::zero()));
  }
  for (std::uint16_t p = 0; p < places.size(); ++p) {
    const Duration first = places[shared(p)].until_room;
    places[p].until_room = places.has_room(p) || first == Duration::max() ? Duration::zero() : first;
  }
}

std::shared_ptr<Record> Queue::pop_locked() noexcept {
  for (;;) {
    auto record = std::static_pointer_cast<Record>(ready_.pop());
    if (!record || record->state != State::staging) return record;
    record->is_due = true;  // the thread that stages it runs it next
    commit_locked(*record);
    begin_locked(*record);
  }
}

void Queue::begin_locked(Record& record, bool counts_for_tag) noexcept {
  leave_line_locked(record);
  record.counts_for_tag = counts_for_tag && record.tag_state;
  if (record.counts_for_tag) ++record.tag_state->running;
  active_.add(record);
}

void Queue::commit_locked(Record& record, Instant now) noexcept {
  Places& places = ready_.places();
  record.runs.committed = now == Instant() ? parts_.clock.now() : now;
  record.runs.ends = record.runs.committed + record.runs.estimate;
  record.runs.share = places.share(record.place, record.runs.committed);
  places.commit(record.place);
  record.is_committed = true;
  ++runs_;
}

void Queue::take_batch_locked(Record& leader) noexcept {
  if (ready_.places().is_on_threads(leader.place)) return;
  constexpr Duration most_work = std::chrono::milliseconds(1);
  const auto time_of = [](const Waiting& job, Duration mean) -> std::optional<Duration> {
    return job.may_share && mean != Duration::zero() ? std::optional(mean) : std::nullopt;
  };
  const auto own = time_of(leader, leader.runs.times ? leader.runs.times->mean() : Duration::zero());
  if (!own) return;
  Duration work = *own;
  const std::size_t most =
      std::min<std::size_t>(parts_.options.batch_limit, ready_.jobs_per_lane(leader.place));
  Duration time_of_next{};
  const auto may_join = [&](const Waiting& next, Duration mean) {
    const auto time = time_of(next, mean);
    time_of_next = time.value_or(Duration::zero());
    return time && work + *time <= most_work;
  };
  std::uint8_t size = 1;
  for (Record* last = nullptr; size < most;) {
    auto next = std::static_pointer_cast<Record>(ready_.pop_for(leader, may_join));
    if (!next) break;
    if (!next->advance(State::queued, State::running)) continue;  // it has been cancelled
    work += time_of_next;
    begin_locked(*next);
    next->runs.committed = leader.runs.committed;
    next->runs.share = leader.runs.share;
    Record* const member = next.get();
    member->listed.self = std::move(next);
    member->listed.next = nullptr;
    if (last)
      last->listed.next = member;
    else
      leader.batch = member;
    last = member;
    ++size;
  }
  if (size == 1) return;
  leader.leads_batch = true;
  for (Record* one = &leader; one; one = one->next_in_batch()) one->batch_size = size;
}

void Queue::begin_stage_locked(const std::shared_ptr<Record>& record) {
  ready_.stage(record);
  staging_ = record.get();
}

void Queue::end_stage_locked(Bytes copied) noexcept {
  staging_ = nullptr;
  if (copied != Bytes{}) ledger_.note_prefetch(copied);
}

std::optional<std::uint32_t> Queue::begin_flight_locked(Record& record) noexcept {
  record.run_by = 0;
  if (!record.advance(State::running, State::in_flight)) return std::nullopt;
  record.self = record.shared_from_this();
  ++record.callbacks;
  ++callbacks_;
  active_.begin_flight();
  return ++record.flight;
}

void Queue::return_locked(Record& record) noexcept {
  end_active_locked(record);
  record.place = on_threads;
  record.run_by = 0;
  ++queued_;
  TagState* const tag = record.tag_state;
  if (std::exchange(record.counts_for_tag, false)) --tag->running;
  record.state = State::queued;  // an abandoned record is not here: that needs the lock
  if (tag && !closing_) ready_.release_held(*tag);
}

std::shared_ptr<Record> Queue::end_callback_locked(Record& record) noexcept {
  --callbacks_;
  return --record.callbacks == 0 ? std::move(record.self) : record.self;
}

/// Counts a job that settles, or waits again, as a job that runs no longer.
void Queue::end_active_locked(Record& record) noexcept {
  active_.remove(record);
  ready_.end_trial(record);
  // Of a job on wye's threads, the place is free once its thread has left it.
  if (std::exchange(record.is_committed, false) && !ready_.places().is_on_threads(record.place))
    ready_.places().uncommit(record.place);
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
    if (record.runs.committed != Instant() && record.settled_at > record.runs.committed) {
      const Duration share = places.share(record.place, record.settled_at) - record.runs.share;
      record.runs.part = static_cast<double>(share.count()) /
                         static_cast<double>((record.settled_at - record.runs.committed).count());
    }
    if (record.runs.times && !record.error && !record.has_failed)
      note_times(parts_.times, *record.runs.times, record);
    if (record.is_committed) places.resume(places[record.place].pause);
    end_active_locked(record);
  } else {
    leave_line_locked(record);
    ready_.end_trial(record);  // it was taken when another thread settled it
    add_user_locked(1);
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

void Queue::pause_place(const Record& record) noexcept {
  constexpr Duration pause = std::chrono::milliseconds(100);
  const base::Lock lock = hold();
  Places& places = ready_.places();
  const bool is_of_group =
      record.line == shared_line(parts_.pool->fleet().limit(), places[record.place].group - 1u);
  places.refuse(record.place, is_of_group, Clock::steady().now() + pause);
}

void Queue::begin_use() noexcept {
  const base::Lock lock = hold();
  add_user_locked(1);
}

void Queue::add_user_locked(int threads) noexcept {
  users_ += static_cast<std::uint32_t>(threads);
  if (quiescing_ > 0 && is_quiet_locked()) quiet_.wake_all();
}

void Queue::end_use() noexcept {
  const base::Lock lock = hold();
  add_user_locked(-1);
}

bool Queue::is_quiet_locked() const noexcept {
  return queued_ == 0 && active_.count() == 0 && users_ == 0 && callbacks_ == 0 && ready_.count() == 0 &&
         runs_ == 0;
}

Result<void> Queue::await_quiet(const Clock& clock, Instant until) {
  base::Lock lock = hold();
  ++quiescing_;
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

void Queue::close_locked() noexcept {
  closing_ = true;
  room_.wake_all();
}

std::shared_ptr<Record> Queue::take_any() noexcept {
  const base::Lock lock = hold();
  return std::static_pointer_cast<Record>(ready_.take_any());
}

std::shared_ptr<Record> Queue::abandon_next(std::shared_ptr<device::Timeline>& polled) noexcept {
  polled.reset();
  const base::Lock lock = hold();
  if (staging_ && staging_->advance(State::staging, State::abandoned)) {
    if (staging_->is_due)
      end_active_locked(*staging_);
    else
      leave_line_locked(*staging_);
    ledger_.note_without_result(staging_->type_row);
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
    ledger_.note_without_result(record->type_row);
    ++users_;
    return record->shared_from_this();
  }
  return nullptr;
}

SchedulerMetrics Queue::metrics() const {
  const base::Lock lock = hold();
  SchedulerMetrics metrics = ledger_.metrics(parts_.pool->fleet(), parts_.clock.now());
  metrics.queued = queued_;
  metrics.running = active_.count();
  return metrics;
}

}  // namespace wye::scheduler
