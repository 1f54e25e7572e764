// Records the commands of plans, and brings them up to date with the arguments of a run.
#include <algorithm>
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/checked.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns an argument as the commands of a segment use it.
Result<Operand> bind_argument(const PlanState& plan, const PlanSnapshot& snapshot, std::size_t segment,
                              std::size_t step, std::size_t call, std::size_t argument, Operand operand) {
  const Compiled& compiled = *snapshot.compiled;
  const std::size_t device = compiled.segments[segment].device;
  if (operand.kind == Operand::Kind::scratch) {
    const PlanScratch& scratch = compiled.scratch.at(operand.id);
    flight::set_buffer(operand, scratch.buffer, operand.offset);
    if (scratch.array) operand.kind = Operand::Kind::array, operand.object = scratch.array;
  }
  const auto& regions = snapshot.memory->segments[segment].regions;
  auto bound = flight::bind_operand(operand, *base::state_of(compiled.of_pool[device]),
                                    {regions.begin(), regions.size()},
                                    {.bytes = {}, .account = compiled.accounts[device]});
  if (bound) return operand;
  return std::move(bound).error().with_context(
      base::text("while preparing argument {} of step {} '{}' of graph '{}'", argument + 1, step,
                 plan.nodes[step].job[call].name(), plan.name));
}

/// Adds the dispatches of a segment.
Result<void> record(const PlanState& plan, const PlanSnapshot& snapshot, std::size_t segment,
                    RecordedSegment& to) {
  const Operands operands(plan.nodes, plan.numbers, *snapshot.replacements);
  device::Recording& recording = to.sequence.open();
  recording.clear();
  for (const Segment::Dispatch& dispatch : snapshot.compiled->segments[segment].dispatches) {
    const Call& call = plan.nodes[dispatch.step].job[dispatch.call];
    Arguments arguments;
    for (std::size_t a = 0; a < call.arguments().size(); ++a) {
      auto bound = bind_argument(plan, snapshot, segment, dispatch.step, dispatch.call, a,
                                 operands.at(dispatch.step, dispatch.call, a));
      if (!bound) return std::move(bound).error();
      arguments.push_back(*std::move(bound));
    }
    const Executable& executable = snapshot.compiled->executables[dispatch.step][dispatch.call];
    recording.dispatch(base::state_of(executable), arguments, call.items());
    if (dispatch.is_ordered) recording.order();
  }
  return {};
}

/// Replaces the arguments of recorded commands that differ from those of a snapshot.
Result<void> update(const PlanState& plan, const PlanSnapshot& snapshot, std::size_t segment,
                    RecordedSegment& to) {
  const std::vector<Replacement>& wanted = snapshot.replacements->all;
  for (std::size_t i = 0; i < std::max(wanted.size(), to.replaced.size()); ++i) {
    if (i == to.replaced.size()) {
      Replacement& added = to.replaced.emplace_back(wanted[i]);
      added.operand = {};
      added.version = 0;
    }
    Replacement& has = to.replaced[i];
    const std::uint64_t version = i < wanted.size() ? wanted[i].version : 0;
    if (has.version == version) continue;
    has.version = version;
    if (snapshot.compiled->segment_of[has.step] != segment) continue;
    const Operand& operand =
        i < wanted.size() ? wanted[i].operand : plan.nodes[has.step].job[has.call].arguments()[has.argument];
    auto bound = bind_argument(plan, snapshot, segment, has.step, has.call, has.argument, operand);
    if (!bound) return std::move(bound).error();
    if (auto ok = to.sequence.open().set(snapshot.compiled->command_of[has.step] + has.call, has.argument,
                                         *std::move(bound));
        !ok)
      return ok;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<RecordedSegment>> take_recorded(const PlanState& plan, const PlanSnapshot& snapshot,
                                                       std::size_t segment) {
  Compiled& compiled = *snapshot.compiled;
  std::unique_ptr<RecordedSegment> one;
  {
    const base::Lock lock(compiled.mutex);
    auto& idle = compiled.recorded[segment];
    if (!idle.empty()) {
      one = std::move(idle.back());
      idle.pop_back();
    }
  }
  const bool is_new = !one;
  if (is_new)
    one = std::make_unique<RecordedSegment>(
        base::state_of(compiled.of_pool[compiled.segments[segment].device]));
  if (!is_new && one->memory == snapshot.memory->version &&
      one->replacements == snapshot.replacements->version)
    return one;
  if (one->memory != snapshot.memory->version) {
    if (auto ok = record(plan, snapshot, segment, *one); !ok) return std::move(ok).error();
    one->replaced.clear();
    for (const Replacement& replacement : snapshot.replacements->all) {
      one->replaced.push_back(replacement);
      one->replaced.back().operand = {};
    }
  } else if (auto ok = update(plan, snapshot, segment, *one); !ok) {
    return std::move(ok).error();
  }
  one->memory = snapshot.memory->version;
  one->replacements = snapshot.replacements->version;
  return one;
}

void give_back(Compiled& compiled, std::size_t segment, std::unique_ptr<RecordedSegment> recorded) noexcept {
  try {
    const base::Lock lock(compiled.mutex);
    compiled.recorded[segment].push_back(std::move(recorded));
  } catch (const std::bad_alloc&) {  // the next run records the commands again
  }
}

Result<void> record_segment(const PlanRun& run, flight::Flight& flight) {
  Compiled& compiled = *run.snapshot->compiled;
  auto recorded = take_recorded(*run.plan, *run.snapshot, run.segment);
  if (!recorded) return std::move(recorded).error();
  flight.record((*recorded)->sequence, compiled.segments[run.segment].dispatches.size());
  give_back(compiled, run.segment, *std::move(recorded));
  return {};
}

Result<void> check_recorded(const PlanState& plan, const Compiled& compiled, std::size_t segment,
                            RecordedSegment& recorded) {
  const Segment& of = compiled.segments[segment];
  const device::DeviceBase& on = *base::state_of(compiled.of_pool[of.device]);
  const device::Recording& all = *recorded.sequence.submission().recording;
  if (auto ok = device::check(all, on); ok) return ok;
  for (std::size_t i = 0; i < of.dispatches.size(); ++i) {  // finds the step
    const device::Command& command = all.commands()[i];
    Arguments arguments;
    for (const Operand& operand : all.operands(command)) arguments.push_back(operand);
    device::Recording one;
    one.dispatch(command.executable, arguments, command.items);
    one.close();
    if (auto ok = device::check(one, on); !ok)
      return ok.error().with_context(base::text("in step {} '{}' of graph '{}'", of.dispatches[i].step,
                                                plan.nodes[of.dispatches[i].step].job.name(), plan.name));
  }
  return device::check(all, on);
}

Result<void> check_call(const PlanState& plan, const PlanSnapshot& snapshot, std::size_t step,
                        std::size_t call) {
  const std::size_t segment = snapshot.compiled->segment_of[step];
  const Operands operands(plan.nodes, plan.numbers, *snapshot.replacements);
  const Call& of = plan.nodes[step].job[call];
  Arguments arguments;
  for (std::size_t a = 0; a < of.arguments().size(); ++a) {
    auto bound = bind_argument(plan, snapshot, segment, step, call, a, operands.at(step, call, a));
    if (!bound) return std::move(bound).error();
    arguments.push_back(*std::move(bound));
  }
  device::Recording one;
  one.dispatch(base::state_of(snapshot.compiled->executables[step][call]), arguments, of.items());
  one.close();
  return device::check(
      one, *base::state_of(snapshot.compiled->of_pool[snapshot.compiled->segments[segment].device]));
}

}  // namespace wye::scheduler
