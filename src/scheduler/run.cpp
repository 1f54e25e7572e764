// Places and runs one job.
#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "base/cancellation.hpp"
#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/core.hpp"
#include "scheduler/plan.hpp"
#include "scheduler/runner.hpp"
#include "scheduler/workers.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns the error of a job that was cancelled after it had started.
Error was_cancelled(const Record& record) {
  return Error(Errc::cancelled, base::text("{} was cancelled.", record.subject()));
}

/// Returns whether the commands of an attempt are timed, and counts it.
bool is_sampled(const Record& record) noexcept {
  return record.runs.times && !record.plan_run && !record.job.is_build() &&
         TimeBook::samples(*record.runs.times);
}

/// Notes how long the commands of a job took that has completed. Without stamps that is its run time,
/// by the host's clock.
void note_commands(const Record& record, TimeBook& times) noexcept {
  if (const auto& stamped = record.attempt->stamped())
    times.note_commands(*record.runs.times, stamped->duration(), stamped->clock);
  else
    times.note_commands(*record.runs.times, record.ended - record.started - record.times.sum(),
                        device::StampClock::host);
}

}  // namespace

bool may_succeed_elsewhere(Errc code) {
  switch (code) {
    case Errc::unsupported:
    case Errc::unavailable:
    case Errc::out_of_memory:
    case Errc::over_budget:
    case Errc::device_lost:
    case Errc::compile_failed:
    case Errc::io:
    case Errc::internal: return true;
    default: return false;
  }
}

Record::Record(std::shared_ptr<Core> of, Job&& kept) noexcept
    : Candidates(std::move(kept)), core(std::move(of)) {}
Record::~Record() = default;

Progress Runner::run(Record& record, bool detaches, Instant& now) noexcept {
  const base::CancellationHeld held;
  std::optional<Error> error;
  try {
    if (!record.attempt && record.started == Instant())
      record.started = now == Instant() ? parts_.clock.now() : std::max(now, record.submitted);
    now = {};
    if (!record.attempt && record.started >= record.start_by) {
      error = Error(Errc::timed_out,
                    base::text("{} did not start in time: it was queued for {:.3g} ms.", record.subject(),
                               milliseconds(record.started - record.submitted)));
    } else {
      auto placed = place(record, detaches);
      if (placed && *placed != Progress::completed) return *placed;
      if (!placed) error = std::move(placed).error();
    }
    if (record.stop && !(error && *error == Errc::cancelled))  // also if its time limit has passed since
      error = was_cancelled(record);
  } catch (const std::bad_alloc&) {
    error = parts_.spare.out_of_memory;
  } catch (...) {
    error = parts_.spare.internal;
  }
  if (record.batch) dissolve_batch(record);  // it met an error before it could submit the batch
  record.attempt.reset();
  now = settle(record, State::running, std::move(error));
  return Progress::completed;
}

std::uint16_t Runner::line_of(Record& record) const {
  record.movable = record.preferred = 0;
  if (record.plan_run) {
    const auto& segments = record.plan_run->snapshot->compiled->segments;
    const auto uses_host = [&](const Segment& segment) {
      return parts_.pool->fleet().info(segment.device).features.has(Feature::host_memory);
    };
    if (std::any_of(segments.begin(), segments.end(), uses_host)) return on_threads;
    return static_cast<std::uint16_t>(1 + segments.front().device);
  }
  const auto home = record.job.is_build() ? std::nullopt : parts_.placer.find_home(record);
  if (!home) return on_threads;
  const std::span<const Choice> choices = record.row->choices;
  const std::size_t group = choices[home->device].equal;
  // Otherwise a device of the group, which has taken the job and refused it, could take it again.
  const bool is_left = record.place != on_threads && choices[record.place - 1u].equal == group;
  if (is_left && choices[home->device].is_host) return on_threads;
  if (!home->is_shared || is_left) return static_cast<std::uint16_t>(1 + home->device);
  record.movable = home->movable;
  record.preferred = home->preferred;
  return shared_line(parts_.pool->fleet().limit(), group);
}

/// Returns a record, which this thread runs, to the line of its next device. Returns false if the
/// record stays with this thread; otherwise other threads may have it already.
bool Runner::requeue(Record& record) noexcept try {
  record.may_share = record.leads_batch = false;  // its batch would fail again
  record.batch_size = record.launch_size = 1;
  if (record.start_by != Instant::max())
    return false;  // it has started, and must not expire while it waits again
  return parts_.placer.find_next(record) && workers_.requeue(record, line_of(record));
} catch (const std::bad_alloc&) {
  return false;
}

/// Notes where a record was tried.
void Runner::note_attempt(Record& record) noexcept {
  ++record.attempts;
  record.context = record.attempt ? record.attempt->context_id() : nullptr;
}

/// Emits that a record has failed on a device, and is tried on others.
void Runner::emit_fallback(const Record& record, std::size_t device, const Error& why) noexcept {
  base::Journal& journal = parts_.pool->journal();
  if (!journal.wants<base::JobFellBack>()) return;
  journal.emit(base::JobFellBack{.id = record.id,
                                 .number = record.sequence,
                                 .name = record.name(),
                                 .type = record.job.type().name,
                                 .device = parts_.pool->fleet().info(device).id,
                                 .error = why});
}

/// Notes for the kernels of `job`, which is that of a record or of a step of its plan, how its
/// attempt on a device has ended.
void Runner::note_end(const Record& record, const Job& job, std::size_t device,
                      const Result<Progress>& attempted) noexcept {
  if (attempted)
    parts_.placer.note_completion(job, device);
  else if (attempted.error() == Errc::device_lost && record.attempt && record.attempt->has_begun())
    parts_.placer.note_loss(job, device, record.attempt->lane().device()->ref());
}

/// Opens lost devices again whose time has come. `waits`: also waits for those that other threads
/// open. Returns whether all devices are considered again for a record.
bool Runner::recover_devices(Record& record, bool waits) {
  return parts_.pool->recover_lost(waits) && !record.attempt && parts_.placer.reconsider(record);
}

/// Returns the decision about the device of the attempt of a record, or about the next device to
/// try; null: no further device can run it.
Decision* Runner::find_device(Record& record) {
  // A job that returns from a device was on the device of its last decision.
  if (record.attempt) return &record.decisions.back();
  for (;;) {
    if (Decision* const next = parts_.placer.find_next(record)) return next;
    if (!recover_devices(record, true)) return nullptr;
  }
}

/// Tries a record on a device. Returns nothing if it may be tried on the next one.
Result<std::optional<Progress>> Runner::try_device(Record& record, Decision& decision, bool detaches) {
  decision.verdict = Candidate::Verdict::failed;
  decision.code = RefusalCode::attempt_failed;
  auto attempted = attempt(record, decision.device, detaches);
  if (attempted && *attempted == Progress::in_flight) return std::optional(Progress::in_flight);
  note_end(record, record.job, decision.device, attempted);
  note_attempt(record);
  record.attempt.reset();
  record.device = decision.device;
  if (attempted) {
    parts_.placer.note_run(record, decision);
    return std::optional(Progress::completed);
  }
  const Error& why = attempted.error();
  if (why == Errc::device_lost) parts_.pool->note_loss(decision.device);
  if (std::exchange(record.lacks_memory, false)) {
    decision.verdict = Candidate::Verdict::passed;
    decision.code = RefusalCode::none;
    if (workers_.wait_for_memory(record)) return std::optional(Progress::requeued);
    if (record.stop)
      return Error(Errc::cancelled, base::text("{} was cancelled before it started.", record.subject()));
    decision.verdict = Candidate::Verdict::failed;
    decision.code = RefusalCode::attempt_failed;
  }
  decision.set_error(why);
  if (!may_succeed_elsewhere(why.code())) return why;
  record.has_failed = true;
  emit_fallback(record, decision.device, why);
  if (record.extras) record.extras->shortage = {};
  // A worker runs it on another device in its turn there: it might wait for a lane that only a
  // worker can free.
  if (detaches && requeue(record)) return std::optional(Progress::requeued);
  return std::optional<Progress>();
}

/// Has a job tried next on the device that has taken it. A device whose kernels are still to be built
/// takes no trial: they are built meanwhile.
void Runner::take_over(Record& record) {
  const std::size_t device = record.place - 1u;
  parts_.placer.take_over(record, device, passed_code(record.runs.chosen));
  if (record.runs.chosen != Chosen::trial || !record.runs.times || !record.decisions.back().is_open()) return;
  const auto more = parts_.preparer.build_ahead(record, device, record.runs.times->run());
  if (!more) return;
  parts_.times.delay_trials(*record.runs.times, *more);
  record.decisions.truncate(record.decisions.size() - 1);
}

Result<Progress> Runner::place(Record& record, bool detaches) {
  if (record.plan_run) return place_plan(record, detaches);
  if (!record.attempt)
    if (auto nowhere = parts_.placer.find_target_error(record.on())) return *std::move(nowhere);
  const bool is_considered_again = recover_devices(record, false);
  if (!record.attempt && !record.has_failed && record.place != on_threads && !is_considered_again)
    take_over(record);
  for (;;) {
    if (record.stop && !record.attempt) return was_cancelled(record);  // nor after a failure
    Decision* const decision = find_device(record);
    if (!decision) return parts_.explainer.no_device_error(record);
    if (!record.attempt) {
      if (record.state == State::abandoned) return parts_.spare.abandoned;  // no other device is tried
      if (record.has_failed && record.fallback == Fallback::warn) warn_of_fallback(record, decision->device);
    }
    if (leave_place(record, decision->device, detaches)) return Progress::requeued;
    auto tried = try_device(record, *decision, detaches);
    if (!tried) return std::move(tried).error();
    if (*tried) return **tried;
  }
}

/// Returns a job, which has not been tried yet, to the line of its next device if that is another
/// one than the device that has taken it. If that one refuses the job, it takes no job that it
/// shares for a while. Returns false if the record stays with this thread.
bool Runner::leave_place(Record& record, std::size_t next, bool detaches) noexcept {
  if (record.place == on_threads || 1 + next == record.place) return false;
  record.runs.times = nullptr;  // of this place
  record.runs.estimate = {};
  if (record.batch) dissolve_batch(record);
  if (!detaches || record.has_failed) return false;
  const bool is_refused =
      std::any_of(record.decisions.begin(), record.decisions.end(), [&](const Decision& d) {
        return 1 + d.device == record.place && d.verdict == Candidate::Verdict::refused;
      });
  if (is_refused) queue_.pause_place(record);
  const Instant started = std::exchange(record.started, {});
  if (requeue(record)) return true;
  record.started = started;
  return false;
}

/// Logs that a job is tried on a device because it failed on the one before.
void Runner::warn_of_fallback(const Record& record, std::size_t device) {
  const Decision* failed = nullptr;
  for (const Decision& decision : record.decisions)
    if (decision.verdict == Candidate::Verdict::failed) failed = &decision;
  parts_.log.write(LogLevel::warning, "scheduler",
                   base::text("{} falls back from '{}' to '{}': {}", record.subject(),
                              parts_.pool->fleet().info(failed->device).id,
                              parts_.pool->fleet().info(device).id, failed->error()->sentence()));
}

/// Returns when the time limit of a record that has started passes.
Instant Runner::until_of(const Record& record) noexcept {
  return record.time_limit >= Instant::max() - record.started ? Instant::max()
                                                              : record.started + record.time_limit;
}

/// Begins the times of an attempt, and forgets the notes of the last attempt. Returns the time up to
/// which they are known.
Instant Runner::begin_times(Record& record) const noexcept {
  const bool continues = record.plan_run && record.plan_run->segment > 0;
  const Instant known = record.has_failed || continues ? parts_.clock.now() : record.started;
  if (!continues) record.times = {.lane = known - record.started};  // devices that failed before this one
  record.lacks_memory = record.lacks_tag_memory = false;
  record.tier = record.plan_run ? CacheTier::memory : CacheTier::none;  // a plan has its executables
  if (record.extras) {
    record.extras->passed_over.clear();
    record.extras->variants.clear();
    record.extras->programs.clear();
    record.extras->early_loop_ends.clear();
  }
  return known;
}

/// Begins an attempt of a record on a device: `record.attempt` is set unless the job only builds. It
/// has a lane of its own unless it joins the batch of `leader`.
Result<void> Runner::begin_attempt(Record& record, std::size_t index, flight::Flight* leader) {
  Device copy;
  const Device& device = record.plan_run ? record.plan_run->snapshot->compiled->of_pool[index]
                                         : parts_.pool->fleet().device(index, copy);
  record.tried_on.store(static_cast<std::uint32_t>(index), std::memory_order_relaxed);
  const Instant until = until_of(record);
  Instant lap = begin_times(record);
  const bool is_alone = !record.batch && !leader;
  record.is_sampled = is_alone && is_sampled(record);
  flight::FlightPointer attempt;
  if (!record.job.is_build())
    attempt = parts_.flights.make({.calls = record.job,
                                   .operands = record.plan_run ? &record.plan_run->operands() : nullptr,
                                   .times = &record.times,
                                   .until = until,
                                   .stop = is_alone ? &record.stop : nullptr,  // others of a batch go on
                                   .is_stamped = record.is_sampled},
                                  device, index, record.tag());
  if (!record.plan_run)
    if (auto ok = parts_.preparer.prepare(record, index, attempt.get(), parts_.preparer.ready_by(until)); !ok)
      return ok;
  if (record.tier != CacheTier::memory) {  // a hit is not worth a reading
    const Instant now = parts_.clock.now();
    record.times.build += now - std::exchange(lap, now);
  }
  if (!attempt) return {};
  if (auto ok = attempt->prepare(record.labels(), lap, is_alone && !record.plan_run); !ok) {
    note_shortage(record, *attempt);
    return ok;
  }
  if (leader) {
    leader->lead(*attempt);
  } else {
    if (record.batch)
      if (auto ok = begin_batch(record, *attempt); !ok) return ok;
    if (auto ok = attempt->lease(); !ok) return ok;
  }
  record.attempt = std::move(attempt);
  return {};
}

/// Notes that an attempt has failed for want of memory, if it has.
void Runner::note_shortage(Record& record, const flight::Flight& attempt) noexcept {
  record.lacks_memory = attempt.shortage() != flight::Shortage::none;
  if (attempt.shortage() == flight::Shortage::tag_memory) record.lacks_tag_memory = record.counts_for_tag;
}

/// Binds the operands of an attempt and records its commands.
Result<void> Runner::record_commands(Record& record) {
  flight::Flight& attempt = *record.attempt;
  if (record.plan_run) record.plan_run->plan->wait_for_work_in_flight(attempt.lane());
  if (auto ok = attempt.bind(); !ok) {
    note_shortage(record, attempt);
    return ok;
  }
  if (record.plan_run) return record_segment(*record.plan_run, attempt);
  auto recorded = attempt.record();
  if (record.extras)
    for (const Record::Extras::Variant& ran : record.extras->variants)
      if (const auto took = attempt.time_of(ran.call)) ran.comparison->record(ran.program, *took);
  return recorded;
}

/// Submits the commands of a record, or continues its attempt that `has_returned` from its device,
/// until it completes or is in flight.
Result<Progress> Runner::proceed(Record& record, bool has_returned, bool detaches) {
  flight::Flight& attempt = *record.attempt;
  try {
    if (!has_returned) {
      if (auto recorded = record_commands(record); !recorded) return std::move(recorded).error();
    } else if (record.state == State::abandoned) {
      attempt.discard();
    }
    for (bool is_submitted = has_returned;; is_submitted = false) {
      if (!is_submitted)
        if (const auto point = attempt.submit(!detaches); point && workers_.detach(record, *point))
          return Progress::in_flight;
      auto completed = attempt.complete();
      if (!completed) return std::move(completed).error();
      if (!*completed) continue;
      record.ended = **completed;
      if (record.is_sampled) note_commands(record, parts_.times);
      return Progress::completed;
    }
  } catch (const std::bad_alloc&) {
    attempt.await_submitted();
    return parts_.spare.out_of_memory;
  }
}

/// Tries a record on a device, or continues its attempt that has returned from there.
Result<Progress> Runner::attempt(Record& record, std::size_t index, bool detaches) {
  const AdapterInfo& device = parts_.pool->fleet().info(index);
  const bool has_returned = record.attempt != nullptr;
  if (!has_returned) {
    auto begun = begin_attempt(record, index);
    if (!begun && record.batch) {
      dissolve_batch(record);
      begun = begin_attempt(record, index);
    }
    if (!begun) return std::move(begun).error();
    if (!record.attempt) return Progress::completed;
  }
  auto result = proceed(record, has_returned, detaches && !device.features.has(Feature::host_memory));
  if (result && *result == Progress::in_flight) return result;
  if (record.batch) {
    if (!result && !record.attempt->has_begun()) {
      dissolve_batch(record);
      return this->attempt(record, index, detaches);
    }
    complete_batch(record, result);
  }
  flight::Flight& attempt = *record.attempt;
  record.bytes_transferred = attempt.transferred() + record.bytes_prefetched();
  if (result) {
    attempt.publish();
    return result;
  }
  Error error = std::move(result).error();
  if (error == Errc::cancelled)
    error = was_cancelled(record);
  else if (error == Errc::timed_out)
    error = Error(Errc::timed_out,
                  base::text("{} did not complete on '{}' within its time limit ({:.3g} s).",
                             record.subject(), device.id, milliseconds(record.time_limit) / 1e3));
  error = error.with_context(base::text("while running {} on '{}'", record.object(), device.id));
  attempt.fail(error, record.object());
  if (record.plan_run) record.plan_run->plan->note_in_flight(attempt.lane());
  return error;
}

}  // namespace wye::scheduler
