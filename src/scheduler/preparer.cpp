#include "scheduler/preparer.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns whether every other variant of the kernel would fail the same way.
bool holds_for_all_variants(Errc code) {
  return code == Errc::timed_out || code == Errc::cancelled || code == Errc::device_lost;
}

}  // namespace

/// Returns the executable of one program of a call.
Result<Executable> Preparer::provide(Record& record, std::size_t index,
                                     const std::shared_ptr<const device::Program>& program,
                                     Instant ready_by) {
  Device copy;
  const std::shared_ptr<device::DeviceBase>& device = base::state_of(pool_.fleet().device(index, copy));
  auto provided = record.job.is_build() ? provider_.make_ready(program, device, ready_by)
                                        : provider_.provide(program, device, ready_by);
  if (!provided) return std::move(provided).error();
  record.tier = std::max(record.tier, provided->tier);
  if (program->current().passes_over(*device)) record.make_extras().passed_over.push_back(program);
  return std::move(provided->executable);
}

/// Builds all variants of a call. If variants are not measured, builds only the first possible
/// variant.
Result<Prepared> Preparer::build(Record& record, std::size_t index, const Call& call, Instant ready_by) {
  std::optional<Prepared> built;
  std::optional<Error> why;
  const detail::Programs& programs = base::programs_of(call);
  for (const std::size_t i : variants_on(*base::state_of(pool_.fleet().device(index)), programs)) {
    if (built && !measures_variants_) break;
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
Result<Prepared> Preparer::select(Record& record, std::size_t index, const Call& call, Instant ready_by) {
  const detail::Programs& programs = base::programs_of(call);
  const auto prepare_only = [&](std::size_t i) -> Result<Prepared> {
    auto executable = provide(record, index, programs[i], ready_by);
    if (!executable) return std::move(executable).error();
    return Prepared{std::move(*executable), nullptr, {.program = i}};
  };
  if (programs.size() == 1) return prepare_only(0);  // on any device
  Device copy;
  const device::DeviceBase& device = *base::state_of(pool_.fleet().device(index, copy));
  if (const auto only = only_variant_on(device, programs)) return prepare_only(*only);
  const std::shared_ptr<Comparison> comparison =
      comparisons_.of(call, index, record.row->group_of(index), device);
  std::optional<Error> why;  // the first failure
  for (std::size_t left = programs.size();; --left) {
    const Comparison::Selection selection = comparison->select(measures_variants_ && !record.has_own_limits);
    auto executable = provide(record, index, programs[selection.program], ready_by);
    if (executable) return Prepared{std::move(*executable), comparison, selection};
    if (holds_for_all_variants(executable.error().code())) return std::move(executable).error();
    if (!why) why = executable.error();
    if (left == 1) return *std::move(why);
    comparison->exclude(selection.program, std::move(executable).error());
  }
}

Instant Preparer::ready_by(Instant until) const noexcept {
  return until == Instant::max() || &provider_.clock() == &clock_
             ? until
             : Deadline(until - clock_.now()).at(provider_.clock());
}

Result<void> Preparer::prepare(Record& record, std::size_t index, flight::Flight* attempt, Instant ready_by) {
  const Job& job = record.job;
  for (std::size_t c = 0; c < job.size(); ++c) {
    auto prepared =
        job.is_build() ? build(record, index, job[c], ready_by) : select(record, index, job[c], ready_by);
    if (!prepared) {
      record.lacks_memory = prepared.error() == Errc::out_of_memory;
      return std::move(prepared).error().with_context(base::text("while preparing {}", record.object()));
    }
    const detail::Programs& programs = base::programs_of(job[c]);
    const auto& program = programs[prepared->selection.program];
    if (job.size() > 1 || programs.size() > 1) record.make_extras().programs.push_back(program);
    if (base::state_of(prepared->executable)->may_end_loops_early() && !program->has_short_loops())
      record.make_extras().early_loop_ends.push_back(program);
    if (prepared->comparison && measures_variants_)
      record.make_extras().variants.push_back({prepared->comparison, prepared->selection.program, c});
    if (attempt) attempt->add_step(std::move(prepared->executable), prepared->selection.timed);
  }
  return {};
}

Preparer::Missing Preparer::find_missing(const Record& record, std::size_t index) const {
  constexpr Duration unknown = std::chrono::milliseconds(100);  // of a build, if none has ended
  Device copy;
  const device::DeviceBase& device = *base::state_of(pool_.fleet().device(index, copy));
  Missing missing;
  for (std::size_t c = 0; c < record.job.size(); ++c) {
    const detail::Programs& programs = base::programs_of(record.job[c]);
    for (const std::size_t i : variants_on(device, programs)) {
      const auto build = provider_.build_cost(*programs[i], device);
      const bool is_unknown = build && *build == Duration::zero();
      // A function of the application is code already.
      if (build && !(is_unknown && !programs[i]->current().storable(device))) {
        missing.programs.push_back(programs[i]);
        missing.cost += is_unknown ? unknown : *build;
      }
      if (!measures_variants_) break;
    }
  }
  return missing;
}

std::optional<Duration> Preparer::build_ahead(const Record& record, std::size_t index, Duration run) {
  const Missing missing = find_missing(record, index);
  if (missing.programs.empty()) return std::nullopt;
  if (missing.cost > run) return missing.cost - run;
  Device copy;
  const std::shared_ptr<device::DeviceBase>& device = base::state_of(pool_.fleet().device(index, copy));
  for (const auto& program : missing.programs)
    if (!provider_.begin_build(program, device))
      return std::max(missing.cost, run);  // it failed: this doubles
  return missing.cost;
}

Bytes Preparer::prepare_ahead(Record& record, std::size_t index) noexcept try {
  const Device device = pool_.fleet().device(index);
  const std::shared_ptr<device::DeviceBase>& state = base::state_of(device);
  if (state->lost()) return {};
  const Job& job = record.job;
  const Instant ready_by = Deadline(record.time_limit).at(provider_.clock());
  // Which of several variants runs is not known yet. A plan has its executables.
  for (std::size_t c = 0; c < job.size() && !record.plan_run; ++c)
    if (const auto only = only_variant_on(*state, base::programs_of(job[c])))
      (void)provider_.provide(base::programs_of(job[c])[*only], state, ready_by).has_value();
  if (!record.uses_arrays) return {};
  // A plan without memory is placed again when it runs.
  if (record.plan_run ? !record.plan_run->snapshot->memory : !flight::Binding::may_prefetch(job, device))
    return {};
  Record::Extras& extras = record.make_extras();
  extras.bytes_prefetched =
      flight::Binding(job, device, record.plan_run ? &record.plan_run->operands() : nullptr).prefetch(pool_);
  if (extras.bytes_prefetched != Bytes{}) extras.prefetched_on = index;
  return extras.bytes_prefetched;
} catch (...) {  // a source of the application threw, or memory ran out
  return {};
}

}  // namespace wye::scheduler
