// How one job is placed, run and settled.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/binding.hpp"
#include "scheduler/core.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {
namespace {

/// Copies as large take so long that a submission of their own, which shows how long, costs little beside them.
constexpr Bytes worth_measuring{1 << 20};

double milliseconds(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

/// Whether another device may still do what this one could not. A kernel that failed, an argument that makes
/// no sense and a job that nobody wants any more are the same everywhere.
bool may_go_elsewhere(Errc code) {
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

/// Whether another kernel that does the same could not be had either.
bool holds_for_all(Errc code) {
  return code == Errc::timed_out || code == Errc::cancelled || code == Errc::device_lost;
}

/// Why no program of `programs` can be used on `device`; of the first one.
std::optional<Error> refusal_of(const detail::Programs& programs, const device::DeviceBase& device) {
  auto why = programs[0]->current().refusal(device);
  for (std::size_t i = 1; why && i < programs.size(); ++i)
    if (!programs[i]->current().refusal(device)) return std::nullopt;
  return why;
}

}  // namespace

void Core::run(Record& record) noexcept {
  record.started = clock_->now();
  std::optional<Error> error;
  try {
    if (record.started >= record.start_by)
      error = Error(Errc::timed_out,
                    base::text("{} did not start in time: it was queued for {:.3g} ms.", record.subject(),
                               milliseconds(record.started - record.submitted)));
    else
      error = place(record);
    if (!error && record.stop)
      error = Error(Errc::cancelled, base::text("{} was cancelled.", record.subject()));
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  } catch (...) {
    error = spare_.internal;
  }
  settle(record, State::running, std::move(error));
}

std::optional<Error> Core::place(Record& record) {
  if (auto nowhere = misnamed(record.on)) return nowhere;
  const Preference& row = preferences_.row(record.type, record.size);
  const std::vector<std::size_t> devices = order(choices_, row);
  record.decisions.reserve(devices.size());
  bool fell = false;
  for (std::size_t device : devices) {
    if (auto why = refusal(record, device)) {
      record.decisions.push_back({device, Candidate::Verdict::refused, std::move(why)});
      continue;
    }
    if (fell && record.fallback == Fallback::forbid) {
      record.decisions.push_back({device, Candidate::Verdict::passed, std::nullopt});
      continue;
    }
    if (record.state == State::abandoned) return spare_.abandoned;  // no other device is begun with
    auto done = attempt(record, device);
    record.device = device;
    if (done) {
      // There is room for every decision, and what the others would have said is not worth a job that is done.
      record.decisions.push_back({device, Candidate::Verdict::ran, std::nullopt});
      for (std::size_t rest : devices) {
        const bool considered = std::any_of(record.decisions.begin(), record.decisions.end(),
                                            [&](const Decision& d) { return d.device == rest; });
        if (considered) continue;
        std::optional<Error> why;
        try {
          why = refusal(record, rest);
        } catch (const std::bad_alloc&) {
          why = spare_.out_of_memory;
        }
        const auto verdict = why ? Candidate::Verdict::refused : Candidate::Verdict::passed;
        record.decisions.push_back({rest, verdict, std::move(why)});
      }
      if (fell) {
        const base::Lock lock = base::lock_soon(mutex_);
        ++metrics_.fallbacks;
      }
      return std::nullopt;
    }
    const Error& why = done.error();
    record.decisions.push_back({device, Candidate::Verdict::failed, why});
    if (!may_go_elsewhere(why.code())) return why;
    fell = true;
    if (record.fallback == Fallback::warn)
      log_.write(LogLevel::warning, "scheduler",
                 base::text("{} falls back from '{}': {}", record.subject(), pool_->devices()[device].id(),
                            why.sentence()));
  }
  // Nobody did it. The first real failure says most; else the refusals do.
  for (const Decision& decision : record.decisions) {
    if (decision.verdict != Candidate::Verdict::failed) continue;
    if (record.fallback == Fallback::forbid)
      return decision.why->with_context(base::text("fallback of {} is forbidden", record.object()));
    return *decision.why;
  }
  std::string reasons;
  bool lost = false;
  for (const Decision& decision : record.decisions) {
    reasons += base::text(" {}: {}", pool_->devices()[decision.device].id(), decision.why->sentence());
    lost |= decision.why->code() == Errc::device_lost;
  }
  const Errc code = record.decisions.size() == 1 ? record.decisions.front().why->code()
                    : lost                       ? Errc::device_lost
                                                 : Errc::unsupported;
  return Error(code, base::text("No device can run {}.{}", record.object(), reasons));
}

/// Why no device answers to the name `on`, or nothing.
std::optional<Error> Core::misnamed(std::string_view on) const {
  if (on.empty()) return std::nullopt;
  std::string there;
  for (const AdapterInfo& info : pool_->adapters()) {
    if (!info.usable) continue;
    if (info.id == on || info.backend == on) return std::nullopt;
    there += (there.empty() ? "'" : ", '") + info.id + "'";
  }
  for (const AdapterInfo& info : pool_->adapters())
    if (info.id == on || info.backend == on)
      return Error(Errc::unavailable, base::text("'{}' cannot be used: {}", on, info.reason));
  return Error(Errc::not_found, base::text("There is no device '{}' (there is {}).", on, there));
}

std::optional<Error> Core::refusal(const Record& record, std::size_t index) const {
  const Device& device = pool_->devices()[index];
  const AdapterInfo& info = device.info();
  if (!record.on.empty() && record.on != info.id && record.on != info.backend)
    return Error(Errc::unsupported, base::text("The job asks for '{}'.", record.on));
  if (const Error* lost = base::state_of(device)->lost()) return *lost;
  const Job& job = *record.job;
  for (std::size_t c = 0; c < job.size(); ++c) {
    if (auto why = refusal_of(base::programs_of(job[c]), *base::state_of(device))) return why;
    for (std::size_t i = 0; i < job[c].arguments().size(); ++i) {
      const Operand& operand = job[c].arguments()[i];
      if (operand.kind != Operand::Kind::buffer && operand.kind != Operand::Kind::address) continue;
      const auto* buffer = device::buffer_of(operand);
      if (buffer && buffer->device() != base::state_of(device))
        return Error(Errc::invalid_argument,
                     base::text("Argument {} of '{}' is a buffer of another device ('{}').", i + 1,
                                job[c].name(), buffer->device()->info().id));
    }
  }
  return std::nullopt;
}

/// The executable of one program of a call.
Result<Executable> Core::provide(Record& record, std::size_t index,
                                 const std::shared_ptr<const device::Program>& program, Instant ready_by) {
  const std::shared_ptr<device::DeviceBase>& device = base::state_of(pool_->devices()[index]);
  auto provided = record.job->is_build() ? provider_->make_ready(program, device, ready_by)
                                         : provider_->provide(program, device, ready_by);
  if (!provided) return std::move(provided).error();
  record.tier = std::max(record.tier, provided->tier);
  if (const auto why = program->current().passed_over(*device);
      why && record.passed_over.find(why->sentence()) == std::string::npos)
    record.passed_over += " " + why->sentence();
  return std::move(provided->executable);
}

/// All variants of a call that can be built; the first one, where no others are tried.
Result<Core::Step> Core::build(Record& record, std::size_t index, const Call& call, Instant ready_by) {
  std::optional<Step> built;
  std::optional<Error> why;
  for (std::size_t i = 0; i < base::programs_of(call).size() && (!built || options_.measure_variants); ++i) {
    auto executable = provide(record, index, base::programs_of(call)[i], ready_by);
    if (executable)
      built = Step{std::move(*executable), nullptr, {}};
    else if (holds_for_all(executable.error().code()))
      return std::move(executable).error();
    else if (!why)
      why = std::move(executable).error();
  }
  if (built) return *std::move(built);
  return *std::move(why);
}

/// The variant of a call whose turn it is.
Result<Core::Step> Core::prepare(Record& record, std::size_t index, const Call& call, Instant ready_by) {
  const detail::Programs& programs = base::programs_of(call);
  if (programs.size() == 1) {
    auto executable = provide(record, index, programs[0], ready_by);
    if (!executable) return std::move(executable).error();
    return Step{std::move(*executable), nullptr, {}};
  }
  const std::shared_ptr<Trial> trial = trials_.of(call, index, *base::state_of(pool_->devices()[index]));
  std::optional<Error> why;  // of the first that could not be used
  for (std::size_t left = programs.size();; --left) {
    const Trial::Turn turn = trial->next(options_.measure_variants && !record.in_haste);
    auto executable = provide(record, index, programs[turn.program], ready_by);
    if (executable) {
      if (options_.measure_variants) record.variants.push_back({trial, turn.program});
      return Step{std::move(*executable), trial, turn};
    }
    if (holds_for_all(executable.error().code())) return std::move(executable).error();
    if (!why) why = executable.error();
    if (left == 1) return *std::move(why);
    trial->give_up(turn.program, std::move(executable).error());
  }
}

Result<void> Core::attempt(Record& record, std::size_t index) {
  const Device& device = pool_->devices()[index];
  const Job& job = *record.job;
  record.tried_on.store(index, std::memory_order_relaxed);
  Instant until = record.time_limit >= Instant::max() - record.started ? Instant::max()
                                                                       : record.started + record.time_limit;
  const Instant park = base::parked_until(*clock_, until);
  const Instant ready_by = until == Instant::max() || &provider_->clock() == clock_
                               ? until
                               : Deadline(until - clock_->now()).at(provider_->clock());

  Instant lap = clock_->now();
  record.lane_time = lap - record.started;  // devices that failed before this one
  record.build_time = record.transfer_time = Duration::zero();
  // Gives the time since the last look to one of the job's times.
  const auto spent_on = [&](Duration& what) {
    const Instant now = clock_->now();
    what += now - std::exchange(lap, now);
  };
  std::vector<Step> steps;
  steps.reserve(job.size());
  record.tier = CacheTier::none;
  record.passed_over.clear();
  record.variants.clear();
  for (std::size_t c = 0; c < job.size(); ++c) {
    auto step =
        job.is_build() ? build(record, index, job[c], ready_by) : prepare(record, index, job[c], ready_by);
    if (!step) return std::move(step).error().with_context(base::text("while preparing {}", record.object()));
    steps.push_back(std::move(*step));
  }
  spent_on(record.build_time);
  if (job.is_build()) return {};

  Binding binding(job, device);
  if (auto ok = binding.fetch(park); !ok) return std::move(ok).error();
  if (record.turn) spent_on(record.transfer_time);
  auto lease = pool_->lease_on(index);
  spent_on(record.lane_time);
  if (!lease) {
    if (lease.error() == Errc::timed_out)  // another device may be free
      return Error(Errc::unavailable, lease.error().sentence());
    return std::move(lease).error();
  }
  pool::Context& context = *base::state_of(*lease)->context;
  device::Lane& lane = base::state_of(*lease)->lane();

  bool began = false;
  auto run_steps = [&]() -> Result<void> {
    if (auto ok = binding.bind(lane, context.account, park); !ok) return ok;
    const StopToken stop(&record.stop, until, clock_);
    const auto finish = [&] {
      lane.submit(stop, true);
      began |= !lane.failure();
      return lane.wait(park, stop);
    };
    if (binding.moved() >= worth_measuring) (void)lane.submit(stop, false);
    if (binding.moved() != Bytes{0}) spent_on(record.transfer_time);
    for (std::size_t c = 0; c < job.size(); ++c) {
      const Trial::Turn& turn = steps[c].turn;
      // Its time is that between what comes before it and what comes after.
      if (turn.timed)
        if (auto ok = finish(); !ok) return ok;
      const Instant from = turn.timed ? clock_->now() : Instant();
      lane.dispatch(base::state_of(steps[c].executable), binding.arguments(c), job[c].items());
      if (!turn.timed) continue;
      if (auto ok = finish(); !ok) return ok;
      steps[c].trial->took(turn.program, clock_->now() - from);
    }
    context.dispatches.fetch_add(job.size(), std::memory_order_relaxed);
    const bool returns_much = binding.returning() >= worth_measuring;
    if (returns_much) {
      if (auto ok = finish(); !ok) return ok;
      lap = clock_->now();
    }
    binding.downloads(lane);
    auto ended = finish();
    if (returns_much) spent_on(record.transfer_time);
    // A host function that came back after its time may have stopped early: nobody can tell.
    if (ended && clock_->now() >= until) return Error(Errc::timed_out, "The time limit passed.");
    return ended;
  };
  Result<void> done;
  try {
    done = run_steps();
  } catch (const std::bad_alloc&) {
    done = spare_.out_of_memory;
    began = true;  // it may have
    // What was submitted before may still be using the caller's memory.
    if (!lane.idle()) (void)lane.wait(park, StopToken(&record.stop, until, clock_)).has_value();
  }
  record.moved = binding.moved();
  if (done) {
    binding.publish();
    return {};
  }
  Error error = std::move(done).error();
  if (error == Errc::timed_out)
    error = Error(Errc::timed_out,
                  base::text("{} did not finish on '{}' within its time limit ({:.3g} s).", record.subject(),
                             device.id(), milliseconds(record.time_limit) / 1e3));
  error = error.with_context(base::text("while running {} on '{}'", record.object(), device.id()));
  context.work = record.object();
  binding.spoil(error, began);
  return error;
}

/// Moves a record from `from` to settled, if it is in that state. Allocates nothing: everything it needs was allocated
/// when the job was submitted.
void Core::settle(Record& record, State from, std::optional<Error> error) noexcept {
  if (!record.advance(from, State::settled)) return;
  const auto keep = record.shared_from_this();
  record.ended = clock_->now();
  record.error = std::move(error);
  {
    const base::Lock lock = base::lock_soon(mutex_);
    --(from == State::running ? metrics_.running : metrics_.queued);
    if (from == State::running) unlist_locked(record);
    TypeMetrics none;
    TypeMetrics& type = record.counted ? *record.counted : none;
    if (from == State::running) {
      type.build_time += record.build_time;
      type.run_time +=
          record.ended - record.started - record.lane_time - record.build_time - record.transfer_time;
    }
    if (!record.error) {
      ++metrics_.done, ++type.done;
      ++done_on_[record.device];
    } else if (*record.error == Errc::timed_out) {
      ++metrics_.timed_out, ++type.timed_out;
    } else if (*record.error == Errc::cancelled) {
      ++metrics_.cancelled, ++type.cancelled;
    } else {
      ++metrics_.failed, ++type.failed;
    }
  }
  // What the caller lent it is given back before anybody hears that it is over. A job that never had its turn has only to
  // say so when that comes.
  record.job.reset();
  if (from != State::waiting) {
    for (const auto& array : record.outputs)
      if (record.error) array->fail(*record.error);
    record.outputs.clear();
  }
  const Thens thens = announce(record);
  // A job that never had its turn leaves it to those it waited for: its followers must still follow them.
  if (record.turn && from != State::waiting) leave(record, record.error);
  call(thens, record);
}

/// Lets callers see the result, and returns what to call with it: `Ticket::then` calls by itself from now on.
Core::Thens Core::announce(Record& record) noexcept {
  Thens thens;
  const base::Lock lock(record.mutex);
  record.is_settled = true;
  thens.swap(record.thens);
  record.gate.wake_all();
  return thens;
}

void Core::call(const Thens& thens, Record& record) noexcept {
  for (const auto& then : thens) {
    try {
      then(record.result());
    } catch (...) {  // a host's callback must not end the thread that runs jobs
    }
  }
}

/// Settles a job that runs on, and returns how it is named. What the job uses stays: its thread and its device have it.
std::string Core::abandon(Record& record) noexcept {
  const std::size_t index = record.tried_on.load(std::memory_order_relaxed);
  const std::string_view device =
      index < pool_->devices().size() ? std::string_view(pool_->devices()[index].id()) : "no device yet";
  record.stop = true;
  record.ended = clock_->now();
  record.error = error_or(spare_.abandoned, [&] {
    return Error(Errc::closed,
                 base::text("{} was abandoned: it still ran on '{}' when the deadline of closing passed.",
                            record.subject(), device));
  });
  const Job& job = *record.job;
  for (std::size_t c = 0; c < job.size(); ++c)
    for (std::size_t i = 0; i < job[c].arguments().size(); ++i) {
      const Operand& operand = job[c].arguments()[i];
      if (operand.kind == Operand::Kind::array)
        static_cast<data::ArrayState*>(operand.object.get())->abandon(*record.error, operand.access);
    }
  const Thens thens = announce(record);
  if (record.turn) record.turn->finish();  // its followers settle: the scheduler is closed
  call(thens, record);
  try {
    return base::text("{} on '{}'", record.object(), device);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Explanation Core::explain(const Record& record) const {
  Explanation explanation;
  explanation.job = record.name;
  if (origin_.is_inherited()) return explanation;
  explanation.tag = record.tag;
  if (record.state == State::abandoned) return explanation;  // the thread that runs it may still decide
  const Preference& row = preferences_.row(record.type, record.size);
  const auto has_run = std::any_of(record.decisions.begin(), record.decisions.end(),
                                   [](const Decision& d) { return d.verdict == Candidate::Verdict::ran; });
  const auto say = [&](const Decision& decision) {
    const AdapterInfo& info = pool_->devices()[decision.device].info();
    Candidate candidate{info.id, info.name, decision.verdict, {}};
    if (decision.why) candidate.reason = decision.why->sentence();
    if (decision.verdict == Candidate::Verdict::ran)
      candidate.reason =
          base::text("took {:.3g} ms. {}", milliseconds(record.ended - record.started), reason(record));
    if (decision.verdict == Candidate::Verdict::passed)
      candidate.reason = why_passed(record, row, decision.device, has_run);
    explanation.candidates.push_back(std::move(candidate));
  };
  {
    const base::Lock lock(record.mutex);
    if (!record.is_settled) return explanation;
  }
  for (const Decision& decision : record.decisions)
    if (decision.verdict == Candidate::Verdict::ran) say(decision);
  for (const Decision& decision : record.decisions)
    if (decision.verdict != Candidate::Verdict::ran) say(decision);
  for (const AdapterInfo& info : pool_->adapters())
    if (!info.usable)
      explanation.candidates.push_back({info.id, info.name, Candidate::Verdict::refused, info.reason});
  return explanation;
}

std::string Core::reason(const Record& record) const {
  if (const Error* inherited = origin_.error()) return inherited->sentence();
  std::string text = why_there(record) + record.passed_over;
  for (const auto& [trial, variant] : record.variants)
    if (const std::string said = trial->text(variant); text.find(said) == std::string::npos) text += said;
  return text;
}

std::string Core::why_there(const Record& record) const {
  const AdapterInfo& info = pool_->devices()[record.device].info();
  std::string text;
  for (const Decision& decision : record.decisions) {
    if (decision.verdict != Candidate::Verdict::failed) continue;
    text += base::text("{} failed: {} ", pool_->devices()[decision.device].id(), decision.why->sentence());
  }
  if (!text.empty()) return text + base::text("'{}' was next.", info.id);
  if (!record.on.empty()) return base::text("The job asks for '{}'.", record.on);
  if (pool_->devices().size() == 1) return base::text("'{}' is the only device.", info.id);
  for (const Decision& decision : record.decisions) {
    if (decision.verdict == Candidate::Verdict::ran) break;
    text += base::text("{} refused: {} ", pool_->devices()[decision.device].id(), decision.why->sentence());
  }
  const Preference& row = preferences_.row(record.type, record.size);
  const std::string work = base::text("{} work of {}", record.type.name, to_string(record.size));
  // Backends that the row names before this one, and why none of their devices ran the job.
  std::string absent;
  for (const std::string& backend : row.backends) {
    if (backend == info.backend) break;
    bool any = false;
    for (std::size_t device = 0; device < choices_.size(); ++device) {
      if (choices_[device].backend != backend) continue;
      any = true;
      if (choices_[device].emulated)
        absent += base::text("{}'{}' runs on the CPU and comes last", absent.empty() ? "" : ", ",
                             pool_->devices()[device].id());
    }
    if (!any) absent += base::text("{}'{}' has no usable device", absent.empty() ? "" : ", ", backend);
  }
  if (!absent.empty()) return text + base::text("'{}' is next for {}: {}.", info.backend, work, absent);
  return text + base::text("'{}' comes {} for {}.", info.backend, text.empty() ? "first" : "next", work);
}

/// Why a device that could have run a job was not asked to.
std::string Core::why_passed(const Record& record, const Preference& row, std::size_t device,
                             bool has_run) const {
  if (!has_run) return base::text("fallback of {} is forbidden.", record.object());
  const std::string& first = pool_->devices()[record.device].info().id;
  if (choices_[device].emulated && !choices_[record.device].emulated)
    return base::text("it runs on the CPU and comes after '{}' and every other device.", first);
  if (choices_[device].backend == choices_[record.device].backend)
    return base::text("'{}' is of the same backend and comes before it.", first);
  return base::text("'{}' comes before it for {} work of {} and more.", first, row.type.name,
                    to_string(row.at_least));
}

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
