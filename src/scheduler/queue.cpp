// The threads that run the jobs that are ready.
#include <algorithm>
#include <new>
#include <utility>

#include "base/process.hpp"
#include "base/team.hpp"
#include "base/text.hpp"
#include "scheduler/core.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {
namespace {

constexpr std::size_t most_kept_records = 1024, most_kept_attempts = 64;

}  // namespace

Core::Core(std::shared_ptr<pool::Pool> pool, std::shared_ptr<device::ExecutableProvider> provider,
           SchedulerOptions options)
    : records_(new base::BlockPool(most_kept_records)),
      completions_(new base::BlockPool(most_kept_records)),
      dependencies_(new base::BlockPool(most_kept_records)),
      pool_(std::move(pool)),
      provider_(std::move(provider)),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : &pool_->clock()),
      flights_(*pool_, *clock_, most_kept_attempts),
      log_(options_.log),
      plan_counts_(std::make_shared<PlanCounts>(pool_->fleet().limit())),
      ready_(options_, pool_->options(), pool_->fleet().limit(), times_,
             [accounts = &pool_->accounts()](std::size_t device) { return accounts->of(device)->held(); }),
      ledger_(options_.recent, pool_->fleet().limit()),
      placer_(*pool_, *clock_, options_.preferences,
              [this](const Table& table) {
                const base::Lock lock = base::lock_soon(mutex_);
                ready_.places().add(table);
              }),
      preparer_(*pool_, *provider_, *clock_, times_, options_.measure_variants),
      explainer_(*pool_, placer_),
      refused_(std::shared_ptr<Core>(std::shared_ptr<void>(), this),  // does not own this
               Job::failed("job", workload_types::custom, spare_.out_of_memory)) {
  refused_.state = State::settled;
  refused_.is_settled = true;
  refused_.error = spare_.out_of_memory;
}

constinit thread_local int Core::jobs_on_this_thread = 0;

bool Core::runs_job() noexcept { return jobs_on_this_thread > 0 || base::Team::inside(); }

Core::~Core() = default;

/// Queues a record, under `lock`, and releases the lock.
void Core::make_ready(base::Lock lock, const std::shared_ptr<Record>& record) noexcept {
  std::optional<Error> error;
  if (closing_) {
    error = error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} was not ready when the scheduler closed.", record->subject()));
    });
  } else if (options_.refuse_unreachable && (error = unreachable_locked(*record))) {
    // settles below
  } else {
    try {
      ready_.rank(*record);
      ready_.push(record);
    } catch (const std::bad_alloc&) {
      error = spare_.out_of_memory;
    }
  }
  if (error) {
    lock.unlock();
    settle(*record, State::queued, std::move(error));
    return;
  }
  wake_worker(std::move(lock));
}

/// Returns a record, which this thread runs, to the line of its next device, at its old place in
/// the order. Returns false if the record stays with this thread; otherwise other threads may have
/// it already.
bool Core::requeue(Record& record) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  record.may_share = record.leads_batch = false;  // its batch would fail again
  record.batch_size = record.launch_size = 1;
  if (record.start_by != Instant::max())
    return false;  // it has started, and must not expire while it waits again
  base::Lock lock;
  const std::uint16_t before = record.line;
  try {
    if (!placer_.find_next(record)) return false;
    const std::uint16_t next = line_of(record);
    lock = base::lock_soon(mutex_);
    if (closing_ || record.state != State::running) return false;
    record.line = next;
    record.time_row = nullptr;
    ready_.push(keep);
  } catch (const std::bad_alloc&) {
    if (lock) record.line = before;
    return false;
  }
  record.place = on_threads;
  return_to_queue_locked(record);
  wake_worker(std::move(lock));
  if (keep->stop) cancel(*keep);  // a call that came while it ran could not settle it
  return true;
}

/// Counts a record, which this thread runs and which is in its queue again, as queued.
void Core::return_to_queue_locked(Record& record) noexcept {
  record.run_by = nullptr;
  active_.remove(record);
  ++queued_;
  TagState* const tag = record.tag_state;
  if (std::exchange(record.counts_for_tag, false)) --tag->running;
  record.state = State::queued;  // an abandoned record is not here: that needs the lock
  if (tag && !closing_) ready_.release_held(*tag);
}

/// Returns the error of a job that cannot start by its `start_by`, if the run times of jobs before
/// it are known; otherwise nothing. Counts the jobs that wait and would run before it. Running jobs
/// may end at any time, so they do not count.
std::optional<Error> Core::unreachable_locked(const Record& record) noexcept {
  if (record.start_by == Instant::max()) return std::nullopt;
  const Ready::Expected before = ready_.before(record);
  if (before.jobs == 0) return std::nullopt;
  const Duration left = record.start_by - clock_->now();
  const std::uint32_t at_a_time = ready_.at_a_time(record.line);
  if (before.run_time / at_a_time <= left) return std::nullopt;
  return error_or(spare_.timed_out, [&] {
    return Error(
        Errc::timed_out,
        base::text("{} was refused: {} jobs run before it, {:.3g} ms each and {} at a time, and it is "
                   "to start within {:.3g} ms.",
                   record.subject(), before.jobs, milliseconds(before.run_time) / before.jobs, at_a_time,
                   std::max(0.0, milliseconds(left))));
  });
}

/// Returns the line of the first device that may run a record, and of those that share its jobs;
/// that of the threads if the job holds one while it runs: a run of a plan does if it uses the CPU at
/// any time.
std::uint16_t Core::line_of(Record& record) const {
  record.movable = 0;
  if (record.plan_run) {
    const auto& segments = record.plan_run->snapshot->compiled->segments;
    const auto uses_host = [&](const Segment& segment) {
      return pool_->fleet().info(segment.device).features.has(Feature::host_memory);
    };
    if (std::any_of(segments.begin(), segments.end(), uses_host)) return on_threads;
    return static_cast<std::uint16_t>(1 + segments.front().device);
  }
  const auto home = record.job.is_build() ? std::nullopt : placer_.find_home(record);
  if (!home) return on_threads;
  const std::span<const Choice> choices = record.row->choices;
  const std::size_t group = choices[home->device].equal;
  // Otherwise a device of the group, which has taken the job and refused it, could take it again.
  const bool is_left = record.place != on_threads && choices[record.place - 1u].equal == group;
  if (!home->is_shared || is_left) return static_cast<std::uint16_t>(1 + home->device);
  record.movable = home->movable;
  return ready_.shared_line(group);
}

/// Wakes or starts a worker if there is work, and unlocks. Each worker does the same before it runs
/// a job.
void Core::wake_worker(base::Lock lock) noexcept {
  if (call_worker_locked()) {
    lock.unlock();  // otherwise the woken thread waits for the lock
    return crew_.wake();
  }
  if (!crew_.empty() || ready_.places().committed() > 0)
    return;  // a thread that runs a job takes the next one
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
bool Core::call_worker_locked() noexcept {
  // A worker notices when jobs in flight run out of time, and when a paused queue goes on.
  const bool needs_watch = active_.in_flight() > 0 || ready_.places().has_pauses();
  return crew_.call([this] { return has_work_locked(); }, needs_watch,
                    options_.concurrent_jobs + ready_.places().blocked() + 1, [this] { work(); });
}

/// Runs a job that was taken from a queue, or that has returned, on this thread. `lock` is held
/// before and after.
/// `now`: the time, if the thread knows it; set to the time afterwards, if the thread has read it.
void Core::run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                      Instant& now) noexcept {
  if (record->advance(State::queued, State::running)) {
    ready_.places().commit(record->place);
    begin_locked(*record, false);
  } else if (record->advance(State::returned, State::running)) {
    active_.end_flight();
  } else if (record->state != State::abandoned || !record->attempt) {
    return;  // it has settled meanwhile
  }
  run_begun(lock, std::move(record), is_worker, now);
}

/// Runs a job that counts as running on this thread. `lock` is held before and after.
void Core::run_begun(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker,
                     Instant& now) noexcept {
  const std::uint16_t place = record->place;
  record->run_by = &jobs_on_this_thread;
  if (is_worker && record->may_share && !record->attempt) take_batch_locked(*record);
  if (is_worker)
    wake_worker(std::move(lock));
  else
    lock.unlock();
  ++jobs_on_this_thread;
  const Progress progress = run(*record, is_worker, now);
  record.reset();
  --jobs_on_this_thread;
  lock = base::lock_soon(mutex_);
  end_run_locked(place, progress);
}

/// Counts a job, which counted as committed to a place, as a job that this thread runs no longer.
void Core::end_run_locked(std::uint16_t place, Progress progress) noexcept {
  if (progress == Progress::in_flight) {
    --users_;  // `detach` has counted this thread
  } else {
    Places& places = ready_.places();
    places.uncommit(place);
    if (progress == Progress::completed) places.resume(places[place].pause);
    job_stopped_.wake_all();
    if (closing_) crew_.wake_all();  // workers end with the last job in flight
  }
  note_quiet_locked();
}

/// Takes the next job to run; null if there is none.
std::shared_ptr<Record> Core::pop_locked() noexcept {
  for (;;) {
    auto record = std::static_pointer_cast<Record>(ready_.pop());
    if (!record || record->state != State::staging) return record;
    record->is_due = true;  // the thread that stages it runs it next
    ready_.places().commit(record->place);
    begin_locked(*record, false);
  }
}

/// Takes jobs that wait for the same device into the submission of a job that starts there. The
/// jobs that wait are divided among its lane and the free ones: none is taken that could have a
/// lane of its own.
void Core::take_batch_locked(Record& leader) noexcept {
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
  const std::size_t most = std::min<std::size_t>(options_.batch_limit, ready_.jobs_per_lane(leader.place));
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

void Core::work() noexcept {
  base::Lock lock = base::lock_soon(mutex_);
  const auto is_closed = [&] { return closing_ && active_.in_flight() == 0 && !ready_.has_returned(); };
  const auto has_work = [&] { return is_closed() || crew_.is_waking() || has_work_locked(); };
  const auto* const manual = dynamic_cast<const ManualClock*>(clock_);
  Instant now;  // when the job before ended, unless the thread has waited since
  for (;;) {
    if (!has_work()) {
      now = {};
      crew_.spin(lock, [&] { return ready_.count() > 0; });
    }
    const ManualClock* const wakes_it = active_.in_flight() > 0 ? manual : nullptr;
    crew_.park(lock, std::min(ready_.first_resume(), active_.first_expiry()), wakes_it,
               [&] { return has_work() || (wakes_it && active_.has_expired(*clock_)); });
    active_.return_expired(*clock_, ready_);
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
void Core::stage(base::Lock& lock, std::shared_ptr<Record> record, Instant& now) noexcept {
  if (!record->advance(State::queued, State::staging)) return;
  std::optional<Error> error;
  try {
    ready_.stage(record);
    staging_ = record.get();
    wake_worker(std::move(lock));
    const Bytes copied = preparer_.prepare_ahead(*record, record->place - 1u);
    lock = base::lock_soon(mutex_);
    if (copied != Bytes{}) ledger_.note_prefetch(copied);
    staging_ = nullptr;
    if (closing_) job_stopped_.wake_all();
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  if (std::exchange(record->is_due, false)) {
    if (record->advance(State::staging, State::running)) return run_begun(lock, std::move(record), true, now);
    ready_.places().uncommit(record->place);  // abandoned
    return;
  }
  if (!record->advance(State::staging, State::queued)) return;  // abandoned
  if (closing_ && !error)
    error = error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} had not started when the scheduler was closed.", record->subject()));
    });
  wake_worker(std::move(lock));
  // Calls that came while it was staged could not settle it.
  if (error) settle(*record, State::queued, std::move(error));
  if (record->stop) cancel(*record);
  if (record->start_by != Instant::max() && clock_->now() >= record->start_by) expire(*record);
  record.reset();
  lock = base::lock_soon(mutex_);
}

/// Runs a queued job on the calling thread if there is room. Returns whether it did, without `lock`
/// then.
bool Core::run_if_room(base::Lock& lock, Record& record) {
  const bool nested = runs_job();
  const std::optional<std::uint16_t> place = nested ? std::nullopt : ready_.find_room(record);
  if (!nested && (!place || (record.tag_state && record.tag_state->is_full()))) return false;
  if (!record.advance(State::queued, State::running)) return false;
  if (place)
    ready_.places().commit(*place);
  else
    ++users_;
  begin_locked(record, nested);
  record.place = place.value_or(on_threads);
  record.run_by = &jobs_on_this_thread;
  lock.unlock();
  ++jobs_on_this_thread;
  Instant now;
  const Progress progress = run(record, false, now);
  --jobs_on_this_thread;
  if (nested) return end_use(), true;
  lock = base::lock_soon(mutex_);
  end_run_locked(*place, progress);
  wake_worker(std::move(lock));
  return true;
}

/// Counts and lists a job that this thread runs next.
void Core::begin_locked(Record& record, bool is_nested) noexcept {
  leave_queue_locked(record);
  ready_.observe(record);
  record.counts_for_tag = record.tag_state && !is_nested;
  if (record.counts_for_tag) ++record.tag_state->running;
  active_.add(record);
}

/// Counts a job that waits no longer.
void Core::leave_queue_locked(Record& record) noexcept {
  --queued_;
  ready_.leave(record);
  if (waiting_for_room_ > 0 && queued_ < options_.max_queued) room_.wake_one();
}

SchedulerMetrics Core::metrics_locked() const {
  SchedulerMetrics metrics = ledger_.metrics(pool_->fleet());
  metrics.queued = queued_;
  metrics.running = active_.count();
  return metrics;
}

}  // namespace wye::scheduler
