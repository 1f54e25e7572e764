// Compiles graphs: places their steps and builds kernels.
#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {

std::string Compiler::step_text(std::size_t step) const {
  return base::text("step {} '{}' of graph '{}'", step, plan_.nodes[step].job.name(), plan_.name);
}

Job Compiler::job_of(std::size_t step, const Operands& operands) const {
  Job job = plan_.nodes[step].job;
  std::vector<Call> calls;
  for (std::size_t c = 0; c < job.size(); ++c) {
    Call& call = calls.emplace_back(job[c]);
    for (std::size_t a = 0; a < call.arguments().size(); ++a) call.arguments()[a] = operands.at(step, c, a);
  }
  Call first = std::move(calls.front());
  calls.erase(calls.begin());
  return Job::sequence(std::string(job.name()), job.type(), std::move(first), std::move(calls));
}

/// Checks all that does not depend on devices.
Result<void> Compiler::check(const Operands& operands) const {
  if (plan_.nodes.empty()) return base::invalid(base::text("Graph '{}' has no steps.", plan_.name));
  std::map<std::uint64_t, data::IntervalSet> scratch;  // bytes that earlier calls have written
  for (std::size_t s = 0; s < plan_.nodes.size(); ++s) {
    const auto wrong = [&](std::string sentence) -> Result<void> {
      return base::invalid(std::move(sentence)).with_context("in " + step_text(s));
    };
    const Job& added = plan_.nodes[s].job;
    if (added.error()) return added.error()->with_context("in " + step_text(s));
    if (added.is_build()) return wrong("A job that builds a kernel is no step of a graph.");
    const Job job = job_of(s, operands);
    if (auto ok = flight::check_operands(job); !ok) return ok.error().with_context("in " + step_text(s));
    for (std::size_t c = 0; c < job.size(); ++c) {
      const std::size_t slots = base::program_of(job[c])->schema().slots.size();
      if (job[c].arguments().size() < slots)
        return wrong(base::text("Argument {} of '{}' is not set; the kernel takes {} arguments.",
                                job[c].arguments().size() + 1, job[c].name(), slots));
      for (std::size_t a = 0; a < job[c].arguments().size(); ++a) {
        const Operand& operand = job[c].arguments()[a];
        if (operand.kind == Operand::Kind::array) {
          const auto& array = static_cast<const data::ArrayState&>(*operand.object);
          if (array.pool().get() != core_.parts().pool.get())
            return wrong(
                base::text("Argument {} of '{}' is an array of another runtime.", a + 1, job[c].name()));
          if (writes(operand.access) && array.is_read_only())
            return data::ArrayState::read_only_error()
                .with_context(base::text("as argument {} of '{}'", a + 1, job[c].name()))
                .with_context("in " + step_text(s));
        }
        if (operand.kind != Operand::Kind::scratch) continue;
        data::IntervalSet& written = scratch[operand.id];
        if (reads(operand.access) && operand.count != 0 && written.empty())
          return wrong(base::text("Argument {} of '{}' reads scratch memory that no call before it writes.",
                                  a + 1, job[c].name()));
        const data::Interval bytes{operand.offset * operand.size,
                                   (operand.offset + operand.count) * operand.size};
        if (writes(operand.access)) written.add(bytes);
      }
    }
  }
  return {};
}

/// Chooses a device for each step.
Result<void> Compiler::place(const Operands& operands, const PlanDescription* placement) {
  if (!placement)
    if (auto nowhere = core_.parts().placer.find_target_error(plan_.on)) return *std::move(nowhere);
  for (std::size_t s = 0; s < plan_.nodes.size(); ++s) {
    const std::string_view on = placement ? std::string_view() : std::string_view(plan_.on);
    Placed& placed = placed_.emplace_back(Placed{core_.make_record(job_of(s, operands), {.on = on})});
    placed.record->has_own_limits = true;  // variants are chosen, not measured
    for (const std::size_t device : placed.record->row->devices)
      if (device < devices_.size())  // otherwise it was added meanwhile
        placed.decisions.push_back(core_.parts().placer.consider(*placed.record, device));
    if (placement) {
      const std::string& id = placement->steps[s].device;
      const auto there = std::find_if(placed.decisions.begin(), placed.decisions.end(),
                                      [&](const Decision& d) { return device(d.device).id() == id; });
      if (there == placed.decisions.end())
        return Error(Errc::not_found,
                     base::text("The placement has {} on device '{}', which this runtime does not have.",
                                step_text(s), id));
      if (!there->is_open())
        return Error(Errc::unsupported,
                     base::text("The placement has {} on device '{}', which refuses it: {}", step_text(s), id,
                                core_.parts().explainer.describe(*placed.record, *there)));
      placed.chosen = static_cast<std::size_t>(there - placed.decisions.begin());
      placed.is_pinned = true;
      continue;
    }
    if (placed.choose([](std::size_t) { return true; })) continue;
    std::string reasons;
    bool is_lost = false;
    for (const Decision& decision : placed.decisions) {
      reasons += base::text(" {}: {}", device(decision.device).id(),
                            core_.parts().explainer.describe(*placed.record, decision));
      is_lost |= decision.code == RefusalCode::device_lost;
    }
    return Error(is_lost ? Errc::device_lost : Errc::unsupported,
                 base::text("No device can run {}.{}", step_text(s), reasons));
  }
  if (placement) return {};
  spread();
  if (plan_.one_silicon) return place_on_one_silicon();
  return {};
}

/// Moves the steps on each group of equal devices to that one of them which the fewest plans use.
void Compiler::spread() {
  std::map<std::size_t, std::size_t> member_of;  // by group
  for (Placed& placed : placed_) {
    const std::span<const Choice> choices = placed.record->row->choices;
    const std::size_t group = choices[placed.device()].equal;
    const auto known = member_of.try_emplace(group, placed.device());
    std::size_t& member = known.first->second;
    for (const Decision& decision : placed.decisions)
      if (known.second && decision.is_open() && choices[decision.device].equal == group &&
          core_.parts().plan_counts->on(decision.device) < core_.parts().plan_counts->on(member))
        member = decision.device;
    (void)placed.choose([&](std::size_t device) { return device == member; });
  }
}

/// Moves the steps on GPUs to one processor: to that of most steps, among those where every step
/// can run, there or on a device that uses host memory.
Result<void> Compiler::place_on_one_silicon() {
  const auto is_host = [&](std::size_t d) { return device(d).info().features.has(Feature::host_memory); };
  const auto silicon_of = [&](std::size_t d) { return base::state_of(device(d))->silicon().get(); };
  std::map<const silicon::Silicon*, std::size_t> votes;
  for (const Placed& placed : placed_)
    if (!is_host(placed.device())) ++votes[silicon_of(placed.device())];
  if (votes.size() < 2) return {};
  const silicon::Silicon* best = nullptr;
  std::size_t most = 0, stuck = 0;
  for (const Device& candidate : devices_) {  // of equal ones the first device's
    const silicon::Silicon* const silicon = base::state_of(candidate)->silicon().get();
    const auto vote = votes.find(silicon);
    if (vote == votes.end() || vote->second <= most) continue;
    const auto fits = [&](const Placed& placed) {
      return std::any_of(placed.decisions.begin(), placed.decisions.end(), [&](const Decision& d) {
        return d.is_open() && (is_host(d.device) || silicon_of(d.device) == silicon);
      });
    };
    const auto misfit = std::find_if_not(placed_.begin(), placed_.end(), fits);
    if (misfit == placed_.end())
      best = silicon, most = vote->second;
    else
      stuck = static_cast<std::size_t>(misfit - placed_.begin());
  }
  if (!best)
    return Error(
        Errc::unsupported,
        base::text("No processor can run all GPU steps of graph '{}': {} needs another one than other "
                   "steps. Without one_silicon they may run on several.",
                   plan_.name, step_text(stuck)));
  for (Placed& placed : placed_) {
    if (is_host(placed.device()) || silicon_of(placed.device()) == best) continue;
    for (Decision& decision : placed.decisions)
      if (decision.is_open() && !is_host(decision.device) && silicon_of(decision.device) != best)
        decision.refuse(RefusalCode::other_silicon);
    (void)placed.choose([](std::size_t) { return true; });
  }
  return {};
}

/// Builds the kernels of all steps. Returns false if a device failed and its steps have other
/// devices now.
Result<bool> Compiler::build() {
  compiled_->of_pool = devices_;
  compiled_->devices.clear();
  compiled_->executables.clear();
  bool has_moved = false;
  for (std::size_t s = 0; s < placed_.size(); ++s) {
    Placed& placed = placed_[s];
    const Job& job = placed.record->job;
    std::vector<Executable>& executables = compiled_->executables.emplace_back();
    compiled_->devices.push_back(placed.device());
    for (std::size_t c = 0; c < job.size(); ++c) {
      auto step = core_.parts().preparer.select(*placed.record, placed.device(), job[c], ready_by_);
      if (step) {
        executables.push_back(std::move(step->executable));
        continue;
      }
      Error error = std::move(step).error().with_context("while preparing " + step_text(s));
      if (placed.is_pinned || plan_.fallback == Fallback::forbid || !may_succeed_elsewhere(error.code()))
        return error;
      Decision& failed = placed.decisions[placed.chosen];
      failed.verdict = Candidate::Verdict::failed;
      failed.code = RefusalCode::attempt_failed;
      failed.set_error(error);
      if (!placed.choose([](std::size_t) { return true; })) return error;
      if (plan_.fallback == Fallback::warn)
        core_.parts().log.write(LogLevel::warning, "scheduler",
                                base::text("{} falls back to '{}': {}", step_text(s),
                                           device(placed.device()).id(), error.sentence()));
      has_moved = true;
      break;
    }
  }
  if (!has_moved) {
    compiled_->use = {core_.parts().plan_counts, compiled_->devices};
    return true;
  }
  if (plan_.one_silicon)
    if (auto ok = place_on_one_silicon(); !ok) return std::move(ok).error();
  return false;
}

/// Arranges the steps on their devices.
void Compiler::arrange_steps(const Dependencies& dependencies) {
  std::vector<std::size_t> calls;
  for (const GraphNode& node : plan_.nodes) calls.push_back(node.job.size());
  static_cast<Arrangement&>(*compiled_) = arrange(compiled_->devices, calls, dependencies);
  compiled_->recorded.clear();
  compiled_->recorded.resize(compiled_->segments.size());
}

Result<std::shared_ptr<const PlanSnapshot>> Compiler::compile(
    std::shared_ptr<const Replacements> replacements, const PlanDescription* placement) {
  const Operands operands(plan_.nodes, plan_.numbers, *replacements);
  if (auto ok = check(operands); !ok) return std::move(ok).error();
  auto dependencies = find_dependencies(plan_.nodes, operands);
  if (!dependencies) return std::move(dependencies).error();
  if (placement)
    if (std::string difference = placement_difference(*placement, shape_of(plan_, operands, *dependencies));
        !difference.empty())
      return base::invalid("The placement is of another graph: " + difference);
  compiled_ = std::make_shared<Compiled>();
  placed_.clear();
  if (auto ok = place(operands, placement); !ok) return std::move(ok).error();
  for (bool is_built = false; !is_built;) {
    auto built = build();
    if (!built) return std::move(built).error();
    is_built = *built;
  }
  arrange_steps(*dependencies);
  if (auto ok = reserve_memory(core_.parts().pool, plan_, *compiled_, operands); !ok)
    return std::move(ok).error();
  if (placement)
    for (const PlanDescription::Device& used : compiled_->description->devices)
      for (const PlanDescription::Device& wanted : placement->devices)
        if (used.id == wanted.id && used.name != wanted.name)
          return Error(Errc::unsupported, base::text("Device '{}' is '{}'; the placement was made for '{}'.",
                                                     used.id, used.name, wanted.name));
  auto memory = find_memory(plan_, *compiled_, operands, nullptr);
  if (!memory) return std::move(memory).error();
  auto snapshot = std::make_shared<PlanSnapshot>();
  snapshot->compiled = compiled_;
  snapshot->replacements = std::move(replacements);
  snapshot->arrays = std::make_shared<const ArrayUses>(find_array_uses(plan_.nodes, operands));
  snapshot->memory = *std::move(memory);
  for (std::size_t i = 0; i < compiled_->segments.size(); ++i) {
    auto recorded = take_recorded(plan_, *snapshot, i);
    if (!recorded) return std::move(recorded).error();
    if (auto ok = check_recorded(plan_, *compiled_, i, **recorded); !ok) return std::move(ok).error();
    give_back(*compiled_, i, *std::move(recorded));
  }
  describe(operands, *dependencies, *snapshot->memory);
  return std::shared_ptr<const PlanSnapshot>(std::move(snapshot));
}

}  // namespace wye::scheduler
