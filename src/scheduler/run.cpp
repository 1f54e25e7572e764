// Places and runs one job.
#include <algorithm>
#include <chrono>
#include <exception>
#include <initializer_list>
#include <new>
#include <utility>

#include "base/cancellation.hpp"
#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/core.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns whether every other variant of the kernel would fail the same way.
bool holds_for_all_variants(Errc code) {
  return code == Errc::timed_out || code == Errc::cancelled || code == Errc::device_lost;
}

/// Returns whether no program of `programs` can be used on `device`.
bool is_refused(const detail::Programs& programs, const device::DeviceBase& device) {
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i]->current().runs_on(device)) return false;
  return true;
}

/// Returns the error of a job that was cancelled after it had started.
Error was_cancelled(const Record& record) {
  return Error(Errc::cancelled, base::text("{} was cancelled.", record.subject()));
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

Record::Record(std::shared_ptr<Core> of, Job&& kept) noexcept : core(std::move(of)), job(std::move(kept)) {}
Record::~Record() = default;

/// Runs a record until it settles, is in flight or is requeued. Unless it has completed, it may be
/// gone when this returns. `now` is as in `run_popped`.
Core::Progress Core::run(Record& record, bool detaches, Instant& now) noexcept {
  const base::CancellationHeld held;
  std::optional<Error> error;
  try {
    if (!record.attempt && record.started == Instant())
      record.started = now == Instant() ? clock_->now() : std::max(now, record.submitted);
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
    error = spare_.out_of_memory;
  } catch (...) {
    error = spare_.internal;
  }
  if (record.batch) dissolve_batch(record);  // it met an error before it could submit the batch
  record.attempt.reset();
  now = settle(record, State::running, std::move(error));
  return Progress::completed;
}

/// Has a job tried next on the device that has taken it from a line of several devices.
void Core::take_over(Record& record, std::size_t device) const {
  auto& decisions = record.decisions;
  if (!decisions.empty() && decisions.back().is_open()) {
    if (decisions.back().device == device) return;
    decisions.back().code = RefusalCode::busy;
  }
  const auto known =
      std::find_if(decisions.begin(), decisions.end(), [&](const Decision& d) { return d.device == device; });
  if (known == decisions.end())
    decisions.emplace_back();
  else
    std::rotate(known, known + 1, decisions.end());
  decisions.back() = consider(record, device);
}

/// Considers the first device again that was passed over for one of `codes`. Returns its decision,
/// which is the last one then; null if there is none.
Decision* Core::consider_again(Record& record, std::initializer_list<RefusalCode> codes) const {
  const auto passed = std::find_if(
      record.decisions.begin(), record.decisions.end(),
      [&](const Decision& one) { return std::find(codes.begin(), codes.end(), one.code) != codes.end(); });
  if (passed == record.decisions.end()) return nullptr;
  std::rotate(passed, passed + 1, record.decisions.end());
  Decision& last = record.decisions.back();
  return &(last = consider(record, last.device));
}

/// Returns the decision about the next device to try, or null. Keeps the decision about each device
/// that cannot run the job.
Decision* Core::next_device(Record& record) const {
  if (!record.decisions.empty() && record.decisions.back().is_open()) {  // chosen when the job was submitted
    Decision& chosen = record.decisions.back();
    if (!is_lost(chosen) && !is_blamed(record, chosen) && !is_suspect(chosen)) return &chosen;
  }
  while (Decision* const busy = consider_again(record, {RefusalCode::busy}))
    if (busy->is_open() && !is_suspect(*busy)) return busy;
  const std::vector<std::size_t>& devices = record.row->devices;
  while (record.next_candidate < devices.size()) {
    if (record.has_decision(devices[record.next_candidate])) {
      ++record.next_candidate;
      continue;
    }
    Decision& decision = record.decisions.emplace_back(consider(record, devices[record.next_candidate]));
    ++record.next_candidate;
    if (decision.is_open() && record.has_failed && record.fallback == Fallback::forbid)
      decision.code = RefusalCode::fallback_forbidden;
    if (decision.is_open() && !is_suspect(decision)) return &decision;
  }
  // No other device can run it: it tries the first of those that were passed over.
  while (Decision* const suspect =
             consider_again(record, {RefusalCode::device_suspect, RefusalCode::memory_errors}))
    if (suspect->is_open()) return suspect;
  return nullptr;
}

/// Refuses a suspect device. Returns whether it did.
bool Core::is_suspect(Decision& decision) const noexcept {
  const pool::Suspicion found = pool_->suspicion(decision.device);
  if (found == pool::Suspicion::none) return false;
  decision.refuse(found == pool::Suspicion::memory_errors ? RefusalCode::memory_errors
                                                          : RefusalCode::device_suspect);
  return true;
}

/// Notes for the kernels of `job`, which is that of a record or of a step of its plan, how its
/// attempt on a device has ended.
void Core::note_end(const Record& record, const Job& job, std::size_t device,
                    const Result<Progress>& attempted) noexcept {
  if (attempted)
    blame_.note_completion(job, device);
  else if (attempted.error() == Errc::device_lost && record.attempt && record.attempt->has_begun())
    blame_.note_loss(job, device, record.attempt->lane().device()->ref(), clock_->now());
}

/// Refuses a device if a kernel of the job is blamed for losses of it. Returns whether it did.
bool Core::is_blamed(const Record& record, Decision& decision) const {
  auto program = blame_.find(record.job, decision.device, *clock_);
  if (!program) return false;
  decision.detail = std::make_shared<Decision::Detail>(Decision::Detail{.program = std::move(program)});
  decision.refuse(RefusalCode::kernel_blamed);
  return true;
}

/// Notes that a device has run a job, and that the devices after it were not tried.
void Core::note_ran(Record& record, Decision& decision) noexcept {
  decision.verdict = Candidate::Verdict::ran;
  decision.code = RefusalCode::none;
  for (; record.next_candidate < record.row->devices.size(); ++record.next_candidate)
    if (const std::size_t next = record.row->devices[record.next_candidate]; !record.has_decision(next))
      pass(record, next);
  if (!record.has_failed) return;
  const base::Lock lock = base::lock_soon(mutex_);
  ledger_.note_fallback();
}

Result<Core::Progress> Core::place(Record& record, bool detaches) {
  if (record.plan_run) return place_plan(record, detaches);
  if (!record.attempt)
    if (auto nowhere = target_error(record.on())) return *std::move(nowhere);
  const bool is_considered_again = recover_devices(record, false);
  if (!record.attempt && !record.has_failed && record.place != on_threads && !is_considered_again)
    take_over(record, record.place - 1u);
  // A job that returns from a device was on the device of its last decision.
  for (;;) {
    if (record.stop && !record.attempt) return was_cancelled(record);  // nor after a failure
    Decision* const decision = record.attempt ? &record.decisions.back() : next_device(record);
    if (!decision) {
      if (recover_devices(record, true)) continue;
      break;
    }
    if (!record.attempt) {
      if (record.state == State::abandoned) return spare_.abandoned;  // no other device is tried
      if (record.has_failed && record.fallback == Fallback::warn) warn_of_fallback(record, decision->device);
    }
    if (record.place != on_threads && 1 + decision->device != record.place) {  // its device was lost
      if (record.batch) dissolve_batch(record);
      if (detaches && !record.has_failed && leave_place(record)) return Progress::requeued;
    }
    decision->verdict = Candidate::Verdict::failed;
    decision->code = RefusalCode::attempt_failed;
    auto attempted = attempt(record, decision->device, detaches);
    if (attempted && *attempted == Progress::in_flight) return Progress::in_flight;
    note_end(record, record.job, decision->device, attempted);
    record.attempt.reset();
    record.device = decision->device;
    if (attempted) {
      note_ran(record, *decision);
      return Progress::completed;
    }
    const Error& why = attempted.error();
    if (why == Errc::device_lost) pool_->note_loss(decision->device);
    if (std::exchange(record.lacks_memory, false)) {
      decision->verdict = Candidate::Verdict::passed;
      decision->code = RefusalCode::none;
      if (wait_for_memory(record)) return Progress::requeued;
      if (record.stop)
        return Error(Errc::cancelled, base::text("{} was cancelled before it started.", record.subject()));
      decision->verdict = Candidate::Verdict::failed;
      decision->code = RefusalCode::attempt_failed;
    }
    decision->set_error(why);
    if (!may_succeed_elsewhere(why.code())) return why;
    record.has_failed = true;
    if (record.extras) record.extras->shortage = {};
    // A worker runs it on another device in its turn there: it might wait for a lane that only a
    // worker can free.
    if (detaches && requeue(record)) return Progress::requeued;
  }
  return no_device_error(record);
}

/// Returns the error of a job that no device can run.
Error Core::no_device_error(const Record& record) const {
  // The first failure is more informative than refusals.
  for (const Decision& decision : record.decisions) {
    if (decision.verdict != Candidate::Verdict::failed) continue;
    if (record.fallback == Fallback::forbid)
      return decision.error()->with_context(base::text("fallback of {} is forbidden", record.object()));
    return *decision.error();
  }
  std::string reasons;
  bool lost = false;
  for (const Decision& decision : record.decisions) {
    reasons += base::text(" {}: {}", pool_->fleet().info(decision.device).id, describe(record, decision));
    lost |= decision.code == RefusalCode::device_lost || decision.code == RefusalCode::kernel_blamed;
  }
  const RefusalCode only = record.decisions.size() == 1 ? record.decisions[0].code : RefusalCode::none;
  const Errc code = only == RefusalCode::foreign_buffer ? Errc::invalid_argument
                    : lost                              ? Errc::device_lost
                                                        : Errc::unsupported;
  return Error(code, base::text("No device can run {}.{}", record.object(), reasons));
}

/// Returns a job, which has not been tried yet, to the line of its next device: another one than
/// that which has taken it. If that one refuses the job, it takes no job that it shares for a while.
/// Returns false if the record stays with this thread.
bool Core::leave_place(Record& record) noexcept {
  constexpr Duration pause = std::chrono::milliseconds(100);
  const bool is_refused =
      std::any_of(record.decisions.begin(), record.decisions.end(), [&](const Decision& d) {
        return 1 + d.device == record.place && d.verdict == Candidate::Verdict::refused;
      });
  if (is_refused) {
    const base::Lock lock = base::lock_soon(mutex_);
    ready_.places().pause(ready_.places()[record.place].refusal, Clock::steady().now() + pause);
  }
  const Instant started = std::exchange(record.started, {});
  if (requeue(record)) return true;
  record.started = started;
  return false;
}

/// Opens lost devices again whose time has come. `waits`: also waits for those that other threads
/// open. Returns whether a job, which has not been tried yet, was refused because of one of them:
/// all devices are then considered again.
bool Core::recover_devices(Record& record, bool waits) const {
  if (!pool_->recover_lost(waits) || record.attempt || record.has_failed) return false;
  for (const Decision& decision : record.decisions) {
    if (decision.code != RefusalCode::device_lost ||
        base::state_of(pool_->fleet().device(decision.device))->lost())
      continue;
    record.decisions.clear();
    record.next_candidate = 0;
    return true;
  }
  return false;
}

/// Logs that a job is tried on a device because it failed on the one before.
void Core::warn_of_fallback(const Record& record, std::size_t device) {
  const Decision* failed = nullptr;
  for (const Decision& decision : record.decisions)
    if (decision.verdict == Candidate::Verdict::failed) failed = &decision;
  log_.write(LogLevel::warning, "scheduler",
             base::text("{} falls back from '{}' to '{}': {}", record.subject(),
                        pool_->fleet().info(failed->device).id, pool_->fleet().info(device).id,
                        failed->error()->sentence()));
}

/// Returns why no device of the pool is named `on`, or nothing.
std::optional<Error> Core::target_error(std::string_view on) const {
  if (on.empty()) return std::nullopt;
  const auto is_named = [&](const AdapterInfo& info) { return info.id == on || info.backend == on; };
  const auto& adapters = pool_->adapters();
  std::vector<const AdapterInfo*> there;
  for (const AdapterInfo& info : adapters) {
    if (!info.usable) continue;
    if (is_named(info)) return std::nullopt;
    there.push_back(&info);
  }
  if (const auto unusable = std::find_if(adapters.begin(), adapters.end(), is_named);
      unusable != adapters.end())
    return Error(Errc::unavailable, base::text("'{}' cannot be used: {}", on, unusable->reason));
  return device::not_found(on, there);
}

/// Refuses a device that is lost. Returns whether it did.
bool Core::is_lost(Decision& decision) const noexcept {
  Device copy;
  const Device& device = pool_->fleet().device(decision.device, copy);
  const Error* lost = base::state_of(device)->lost();
  if (!lost) return false;
  pool_->note_loss(decision.device);
  decision.refuse(RefusalCode::device_lost);
  try {
    decision.set_error(*lost);
  } catch (const std::bad_alloc&) {  // `Core::describe` asks the device
  }
  return true;
}

/// Returns whether a device can run a job: `refused` with its code, or open.
Decision Core::consider(const Record& record, std::size_t index) const {
  Decision decision{.device = static_cast<std::uint32_t>(index)};
  Device copy;
  const Device& device = pool_->fleet().device(index, copy);
  const std::string_view on = record.on();
  if (!on.empty() && on != device.info().id && on != device.info().backend) {
    decision.refuse(RefusalCode::not_requested);
    return decision;
  }
  if (is_lost(decision) || is_blamed(record, decision)) return decision;
  const std::shared_ptr<device::DeviceBase>& state = base::state_of(device);
  const Job& job = record.job;
  for (std::size_t c = 0; c < job.size(); ++c) {
    const auto& programs = base::programs_of(job[c]);
    if (is_refused(programs, *state)) {
      decision.detail = std::make_shared<Decision::Detail>(Decision::Detail{.program = programs[0]});
      decision.refuse(RefusalCode::kernel_unsupported);
      return decision;
    }
    const Arguments& arguments = job[c].arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind != Operand::Kind::buffer && arguments[i].kind != Operand::Kind::address) continue;
      const auto* buffer = device::buffer_of(arguments[i]);
      if (!buffer || buffer->device() == state) continue;
      decision.detail = std::make_shared<Decision::Detail>(
          Decision::Detail{.program = programs[0], .owner = buffer->device()});
      decision.argument = static_cast<std::uint16_t>(i + 1);
      decision.refuse(RefusalCode::foreign_buffer);
      return decision;
    }
  }
  return decision;
}

/// Adds the decision about a device that was not tried, because another one has run the job.
void Core::pass(Record& record, std::size_t device) const noexcept {
  try {
    Decision& passed = record.add_decision(device);
    passed.code = record.row->choices[device].emulated && !record.row->choices[record.device].emulated
                      ? RefusalCode::emulated
                      : RefusalCode::lower_preference;
    if (Decision considered = consider(record, device); !considered.is_open()) passed = std::move(considered);
  } catch (const std::bad_alloc&) {  // the reason is then the order of preference
  }
}

/// Returns the executable of one program of a call.
Result<Executable> Core::provide(Record& record, std::size_t index,
                                 const std::shared_ptr<const device::Program>& program, Instant ready_by) {
  Device copy;
  const std::shared_ptr<device::DeviceBase>& device = base::state_of(pool_->fleet().device(index, copy));
  auto provided = record.job.is_build() ? provider_->make_ready(program, device, ready_by)
                                        : provider_->provide(program, device, ready_by);
  if (!provided) return std::move(provided).error();
  record.tier = std::max(record.tier, provided->tier);
  if (program->current().passes_over(*device)) record.make_extras().passed_over.push_back(program);
  return std::move(provided->executable);
}

/// Builds all variants of a call. If variants are not measured, builds only the first possible
/// variant.
Result<Prepared> Core::build(Record& record, std::size_t index, const Call& call, Instant ready_by) {
  std::optional<Prepared> built;
  std::optional<Error> why;
  const detail::Programs& programs = base::programs_of(call);
  for (const std::size_t i : variants_on(*base::state_of(pool_->fleet().device(index)), programs)) {
    if (built && !options_.measure_variants) break;
    auto executable = provide(record, index, programs[i], ready_by);
    if (executable)
      built = Prepared{std::move(*executable), nullptr, {.program = i}};
    else if (holds_for_all_variants(executable.error().code()))
      return std::move(executable).error();
    else if (!why)
      why = std::move(executable).error();
  }
  if (built) return *std::move(built);
  return *std::move(why);
}

/// Selects a variant of a call and returns its executable.
Result<Prepared> Core::prepare(Record& record, std::size_t index, const Call& call, Instant ready_by) {
  const detail::Programs& programs = base::programs_of(call);
  const auto prepare_only = [&](std::size_t i) -> Result<Prepared> {
    auto executable = provide(record, index, programs[i], ready_by);
    if (!executable) return std::move(executable).error();
    return Prepared{std::move(*executable), nullptr, {.program = i}};
  };
  if (programs.size() == 1) return prepare_only(0);  // on any device
  Device copy;
  const device::DeviceBase& device = *base::state_of(pool_->fleet().device(index, copy));
  if (const auto only = only_variant_on(device, programs)) return prepare_only(*only);
  const std::shared_ptr<Trial> trial = trials_.of(call, index, record.row->group_of(index), device);
  std::optional<Error> why;  // the first failure
  for (std::size_t left = programs.size();; --left) {
    const Trial::Selection selection = trial->select(options_.measure_variants && !record.has_own_limits);
    auto executable = provide(record, index, programs[selection.program], ready_by);
    if (executable) return Prepared{std::move(*executable), trial, selection};
    if (holds_for_all_variants(executable.error().code())) return std::move(executable).error();
    if (!why) why = executable.error();
    if (left == 1) return *std::move(why);
    trial->exclude(selection.program, std::move(executable).error());
  }
}

/// Returns when the time limit of a record that has started passes.
Instant Core::until_of(const Record& record) noexcept {
  return record.time_limit >= Instant::max() - record.started ? Instant::max()
                                                              : record.started + record.time_limit;
}

/// Returns the same time by the clock of builds.
Instant Core::ready_by(Instant until) const noexcept {
  return until == Instant::max() || &provider_->clock() == clock_
             ? until
             : Deadline(until - clock_->now()).at(provider_->clock());
}

/// Begins the times of an attempt, and forgets the notes of the last attempt. Returns the time up to
/// which they are known.
Instant Core::begin_times(Record& record) const noexcept {
  const bool continues = record.plan_run && record.plan_run->segment > 0;
  const Instant known = record.has_failed || continues ? clock_->now() : record.started;
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

/// Prepares the calls of a job on a device. `attempt` is null if the job only builds.
Result<void> Core::prepare_calls(Record& record, std::size_t index, flight::Flight* attempt,
                                 Instant ready_by) {
  const Job& job = record.job;
  for (std::size_t c = 0; c < job.size(); ++c) {
    auto prepared =
        job.is_build() ? build(record, index, job[c], ready_by) : prepare(record, index, job[c], ready_by);
    if (!prepared) {
      record.lacks_memory = prepared.error() == Errc::out_of_memory;
      return std::move(prepared).error().with_context(base::text("while preparing {}", record.object()));
    }
    const detail::Programs& programs = base::programs_of(job[c]);
    const auto& program = programs[prepared->selection.program];
    if (job.size() > 1 || programs.size() > 1) record.make_extras().programs.push_back(program);
    if (base::state_of(prepared->executable)->may_end_loops_early() && !program->has_short_loops())
      record.make_extras().early_loop_ends.push_back(program);
    if (prepared->trial && options_.measure_variants)
      record.make_extras().variants.push_back({prepared->trial, prepared->selection.program, c});
    if (attempt) attempt->add_step(std::move(prepared->executable), prepared->selection.timed);
  }
  return {};
}

/// Begins an attempt of a record on a device: `record.attempt` is set unless the job only builds. It
/// has a lane of its own unless it joins the batch of `leader`.
Result<void> Core::begin_attempt(Record& record, std::size_t index, flight::Flight* leader) {
  Device copy;
  const Device& device = record.plan_run ? record.plan_run->snapshot->compiled->of_pool[index]
                                         : pool_->fleet().device(index, copy);
  record.tried_on.store(static_cast<std::uint32_t>(index), std::memory_order_relaxed);
  const Instant until = until_of(record);
  Instant lap = begin_times(record);
  const bool is_alone = !record.batch && !leader;
  flight::FlightPointer attempt;
  if (!record.job.is_build())
    attempt = flights_.make({.calls = record.job,
                             .operands = record.plan_run ? &record.plan_run->operands() : nullptr,
                             .times = &record.times,
                             .until = until,
                             .stop = is_alone ? &record.stop : nullptr},  // others of a batch go on
                            device, index, record.tag());
  if (!record.plan_run)
    if (auto ok = prepare_calls(record, index, attempt.get(), ready_by(until)); !ok) return ok;
  if (record.tier != CacheTier::memory) {  // a hit is not worth a reading
    const Instant now = clock_->now();
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
void Core::note_shortage(Record& record, const flight::Flight& attempt) noexcept {
  record.lacks_memory = attempt.shortage() != flight::Shortage::none;
  if (attempt.shortage() == flight::Shortage::tag_memory) record.lacks_tag_memory = record.counts_for_tag;
}

/// Prepares the device of the queue of a job that waits there: builds its kernels and submits
/// copies of the arrays that it reads. The job meets the same errors again when it runs, so they
/// are dropped here.
void Core::prepare_device(Record& record) noexcept {
  const Device device = pool_->fleet().device(record.place - 1u);
  const std::shared_ptr<device::DeviceBase>& state = base::state_of(device);
  if (state->lost()) return;
  try {
    const Job& job = record.job;
    const Instant ready_by = Deadline(record.time_limit).at(provider_->clock());
    // Which of several variants runs is not known yet. A plan has its executables.
    for (std::size_t c = 0; c < job.size() && !record.plan_run; ++c)
      if (const auto only = only_variant_on(*state, base::programs_of(job[c])))
        (void)provider_->provide(base::programs_of(job[c])[*only], state, ready_by).has_value();
    if (!record.uses_arrays) return;
    // A plan without memory is placed again when it runs.
    if (record.plan_run ? !record.plan_run->snapshot->memory : !flight::Binding::may_prefetch(job, device))
      return;
    Record::Extras& extras = record.make_extras();
    extras.bytes_prefetched =
        flight::Binding(job, device, record.plan_run ? &record.plan_run->operands() : nullptr)
            .prefetch(*pool_);
    if (extras.bytes_prefetched == Bytes{}) return;
    extras.prefetched_on = record.place - 1u;
    const base::Lock lock = base::lock_soon(mutex_);
    ledger_.note_prefetch(extras.bytes_prefetched);
  } catch (...) {  // a source of the application threw, or memory ran out
  }
}

/// Binds the operands of an attempt and records its commands.
Result<void> Core::record_commands(Record& record) {
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
      if (const auto took = attempt.time_of(ran.call)) ran.trial->record(ran.program, *took);
  return recorded;
}

/// Submits the commands of a record, or continues its attempt that `has_returned` from its device,
/// until it completes or is in flight.
Result<Core::Progress> Core::proceed(Record& record, bool has_returned, bool detaches) {
  flight::Flight& attempt = *record.attempt;
  try {
    if (!has_returned) {
      if (auto recorded = record_commands(record); !recorded) return std::move(recorded).error();
    } else if (record.state == State::abandoned) {
      attempt.discard();
    }
    for (bool is_submitted = has_returned;; is_submitted = false) {
      if (!is_submitted)
        if (const auto point = attempt.submit(!detaches); point && detach(record, *point, attempt.park()))
          return Progress::in_flight;
      auto completed = attempt.complete();
      if (!completed) return std::move(completed).error();
      if (!*completed) continue;
      record.ended = **completed;
      return Progress::completed;
    }
  } catch (const std::bad_alloc&) {
    attempt.await_submitted();
    return spare_.out_of_memory;
  }
}

/// Tries a record on a device, or continues its attempt that has returned from there.
Result<Core::Progress> Core::attempt(Record& record, std::size_t index, bool detaches) {
  const AdapterInfo& device = pool_->fleet().info(index);
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
