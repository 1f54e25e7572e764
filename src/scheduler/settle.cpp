// The end of a job: its result, its arrays, its followers and the functions of its ticket.
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/core.hpp"
#include "scheduler/followers.hpp"
#include "scheduler/listeners.hpp"
#include "scheduler/plan.hpp"
#include "scheduler/runner.hpp"
#include "scheduler/workers.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns how long a job held its device: from its start to its end, builds not counted. Jobs of a
/// batch have equal parts of its time.
Duration held_by(const Record& record) noexcept {
  return (record.settled_at - record.started - record.times.build) / record.batch_size;
}

/// Returns how a job that has run came to its device. Another thread may place a job that has not.
HowPlaced placed(const Record& record) noexcept {
  const bool is_there = record.place == 1 + record.device;
  return {.has_moved = is_there && record.runs.chosen == Chosen::idle,
          .was_trial = is_there && record.runs.chosen == Chosen::trial,
          .expected = record.has_failed ? Duration::zero() : record.runs.estimate,
          .taken = held_by(record)};
}

/// Returns the facts about a job whose state was `from`.
Settled settled(const Record& record, State from) noexcept {
  const bool has_run = from == State::running;
  return {.id = record.id,
          .number = record.sequence,
          .job = record.name(),
          .tag = record.tag(),
          .type = record.job.type(),
          .row = record.type_row,
          .at = record.settled_at,
          .size = record.size,
          .bytes_transferred = record.bytes_transferred,
          .times = {.queue = has_run ? record.queue_time() : Duration::zero(),
                    .build = record.times.build,
                    .transfer = record.times.transfer,
                    .run = has_run ? record.run_time() : Duration::zero()},
          .decisions = {record.decisions.begin(), record.decisions.size()},
          .order = record.plan_run ? nullptr : record.row,
          .device = record.device,
          .error = record.error ? record.error->code() : Errc{},
          .batch_size = record.batch_size,
          .launch_size = record.launch_size,
          .leads_batch = record.leads_batch,
          .has_run = has_run,
          .fell_back = record.has_failed,
          .placed = has_run ? placed(record) : HowPlaced()};
}

/// Returns the run time of a job that has completed, divided by the least one of its kind; zero: it
/// is not known.
double stretch_of(const Record& record, TimeBook& times) noexcept {
  TimeBook::Row* row = record.runs.times;
  if (!row) {
    row = times.row(record.kind(record.row->group_of(record.device)));
    if (row) note_times(times, *row, record);
  }
  if (!row || record.run_time() <= Duration::zero()) return 0;
  return static_cast<double>(record.run_time().count()) /
         static_cast<double>(times.read(*row).run.least.count());
}

void emit_end(const pool::Pool& pool, const Settled& job, const Record& record) noexcept {
  base::Journal& journal = pool.journal();
  if (!journal.wants<base::JobEnded>()) return;
  const std::size_t device = record.tried_on.load(std::memory_order_relaxed);
  const bool was_tried = device < pool.fleet().size();
  journal.emit(base::JobEnded{.id = job.id,
                              .number = job.number,
                              .name = job.job,
                              .type = job.type.name,
                              .device = was_tried ? std::string_view(pool.fleet().info(device).id) : "",
                              .context = record.context ? std::string_view(*record.context) : "",
                              .attempts = record.attempts,
                              .bytes = job.bytes_transferred,
                              .queue_time = job.times.queue,
                              .build_time = job.times.build,
                              .transfer_time = job.times.transfer,
                              .run_time = job.times.run,
                              .error = record.error});
}

/// Logs where a job ran and why, or its error.
void log_end(const base::Logger& log, const Explainer& explainer, const Record& record) noexcept {
  if (!log.wants(LogLevel::debug, "scheduler")) return;
  try {
    log.write(LogLevel::debug, "scheduler",
              record.error
                  ? base::text("{} ended with '{}': {}", record.subject(), name(record.error->code()),
                               record.error->sentence())
                  : base::text("{} ran on '{}': {}", record.subject(),
                               record.core->pool().fleet().info(record.device).id, explainer.reason(record)));
  } catch (const std::bad_alloc&) {  // the log lacks a line
  }
}

/// Releases the followers of a job whose state was `from`. `looks_next`: as that of `Crew::Release`.
void release(Record& record, State from, bool looks_next) noexcept {
  const Crew::Release next(looks_next);
  // Followers of a job whose predecessors are not complete must still follow those.
  if (from != State::waiting)
    complete_arrays(record);
  else
    release_followers(record);
}

}  // namespace

void note_times(TimeBook& times, TimeBook::Row& row, const Record& record) noexcept {
  times.note(row, held_by(record), record.batch_size == 1 ? std::optional(record.run_time()) : std::nullopt,
             record.settled_at, record.runs.part);
}

Instant Runner::settle(Record& record, State from, std::optional<Error> error) noexcept {
  if (!record.advance(from, State::settled)) return {};
  const auto keep = record.shared_from_this();
  record.settled_at = error || record.ended == Instant() ? parts_.clock.now() : record.ended;
  record.error = std::move(error);
  const Settled job = settled(record, from);
  parts_.recent.add(job);
  queue_.leave(record, from, job);
  emit_end(*parts_.pool, job, record);
  if (from == State::running && !record.error && !record.has_failed && record.batch_size == 1)
    parts_.pool->note_run(record.device, [&] { return stretch_of(record, parts_.times); });
  // The caller's objects are released before the result is visible. The outputs of a job whose
  // predecessors are not complete fail when these are.
  base::release_arguments(record.job);
  record.plan_run.reset();
  if (record.bytes_prefetched() != Bytes{})  // releases the buffers of its copies, if these have completed
    (void)parts_.pool->leases().reclaim(
        *base::state_of(parts_.pool->fleet().device(record.extras->prefetched_on)), Bytes{});
  if (from != State::waiting) fail_outputs(record);
  log_end(parts_.log, parts_.explainer, record);
  std::vector<Continuation> continuations = publish(record);
  release(record, from, from == State::running && jobs_on_this_thread == 1 && continuations.empty());
  // The functions may take long: another thread takes the next job.
  if (!continuations.empty() && jobs_on_this_thread > 0) workers_.wake(queue_.hold());
  call(continuations, record);
  const Instant now = continuations.empty() ? record.settled_at : Instant();
  if (from != State::running) {  // the thread that runs a job counts until it has left the job
    continuations.clear();
    queue_.end_use();
  }
  return now;
}

/// Settles a record that has not started, with the error that `make` returns. Its state only moves
/// forward.
template <class F>
void Runner::settle_unstarted(Record& record, const Error& spare, F make) noexcept {
  for (State from : {State::waiting, State::queued})
    if (record.state == from) settle(record, from, error_or(spare, make));
}

void Runner::expire(Record& record) noexcept {
  settle_unstarted(record, parts_.spare.timed_out, [&] {
    return Error(Errc::timed_out, base::text("{} did not start in time.", record.subject()));
  });
}

void Runner::cancel(Record& record) noexcept {
  if (record.is_settled) return;
  const auto keep = record.shared_from_this();  // a function of the ticket may end it
  record.stop = true;
  settle_unstarted(record, parts_.spare.cancelled, [&] {
    return Error(Errc::cancelled, base::text("{} was cancelled before it started.", record.subject()));
  });
  if (!record.is_settled) workers_.stop_flight(keep);
}

}  // namespace wye::scheduler
