// Describes plans as data.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/native.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// The names of the memory of a graph, in the order of first use. Overlapping host memory has one
/// name.
class MemoryNames {
 public:
  MemoryNames(std::span<const GraphNode> nodes, const Operands& operands) {
    const auto each = [&](auto f) {
      for (std::size_t s = 0; s < nodes.size(); ++s)
        for (std::size_t c = 0; c < nodes[s].job.size(); ++c)
          for (std::size_t a = 0; a < nodes[s].job[c].arguments().size(); ++a)
            if (const auto touched = touched_by(operands.at(s, c, a))) f(*touched);
    };
    each([&](const Touched& touched) {
      if (touched.memory.kind == Operand::Kind::host) host_.add(touched.bytes);
    });
    each([&](const Touched& touched) {
      const auto [place, is_new] = names_.try_emplace(key_of(touched));
      if (is_new) place->second = base::text("{} {}", kind_name(touched.memory.kind), names_.size() - 1);
    });
  }
  std::string operator()(const Touched& touched) const {
    const auto found = names_.find(key_of(touched));
    return found == names_.end() ? std::string() : found->second;
  }
  std::string of(Operand::Kind kind, std::uint64_t id) const {
    const auto found = names_.find({kind, id});
    return found == names_.end() ? std::string() : found->second;
  }
  /// Returns the first byte of the memory; 0 but for host memory.
  std::uint64_t begin_of(const Touched& touched) const noexcept {
    for (const data::Interval& one : host_)
      if (touched.memory.kind == Operand::Kind::host && one.contains(touched.bytes)) return one.first;
    return touched.memory.kind == Operand::Kind::host ? touched.bytes.first : 0;
  }

 private:
  static std::string_view kind_name(Operand::Kind kind) noexcept {
    switch (kind) {
      case Operand::Kind::host: return "host memory";
      case Operand::Kind::array: return "array";
      case Operand::Kind::scratch: return "scratch";
      default: return "buffer";
    }
  }
  Memory key_of(const Touched& touched) const noexcept {
    return touched.memory.kind == Operand::Kind::host ? Memory{touched.memory.kind, begin_of(touched)}
                                                      : touched.memory;
  }
  data::IntervalSet host_;
  std::map<Memory, std::string> names_;
};

std::uint64_t id_of(const void* object) { return std::uint64_t{reinterpret_cast<std::uintptr_t>(object)}; }

/// Finds the copies of a run, if its arrays are on the host when it begins.
class Copies {
 public:
  Copies(const PlanState& plan, const Compiled& compiled, const Operands& operands, const MemoryNames& names)
      : plan_(plan), compiled_(compiled), operands_(operands), names_(names) {}

  void add(std::size_t number, const flight::Binding::Operands& segment) {
    const Device& device = compiled_.of_pool[compiled_.segments[number].device];
    const bool is_in_place = device.info().features.has(Feature::host_memory);
    const std::string here = is_in_place ? "host" : device.id();
    find_first_users(number);
    for (const flight::Binding::Use& use : segment.arrays) add(use, device, here);
    const bool is_last = number + 1 == compiled_.segments.size();
    const std::size_t next =
        is_last ? plan_.nodes.size() : compiled_.segments[number + 1].dispatches.front().step;
    for (const flight::Region& region : segment.regions) {
      const Touched touched{{Operand::Kind::host, 0}, {id_of(region.first), id_of(region.last)}};
      const std::string name = names_(touched);
      const Bytes bytes{static_cast<std::uint64_t>(region.last - region.first)};
      if (region.upload) all.push_back({first_users_[name], name, "host", here, bytes});
      if (region.download) downloads_.push_back({next, name, here, "host", bytes});
    }
    all.insert(all.end(), downloads_.begin(), downloads_.end());
    downloads_.clear();
  }
  std::vector<PlanDescription::Copy> all;

 private:
  struct Contents {
    std::map<std::string, data::IntervalSet> valid;
    std::map<std::string, const device::DeviceBase*> devices;
  };
  void find_first_users(std::size_t number) {
    first_users_.clear();
    for (const Segment::Dispatch& dispatch : compiled_.segments[number].dispatches) {
      const Arguments& arguments = plan_.nodes[dispatch.step].job[dispatch.call].arguments();
      for (std::size_t a = 0; a < arguments.size(); ++a)
        if (const auto touched = touched_by(operands_.at(dispatch.step, dispatch.call, a)))
          first_users_.try_emplace(names_(*touched), dispatch.step);
    }
  }
  std::string name_of(const data::ArrayState* array) const {
    for (const auto& [id, scratch] : compiled_.scratch)
      if (scratch.array.get() == array) return names_.of(Operand::Kind::scratch, id);
    return names_.of(Operand::Kind::array, id_of(static_cast<const device::Retained*>(array)));
  }
  void add(const flight::Binding::Use& use, const Device& device, const std::string& here) {
    const std::string name = name_of(use.array);
    const std::size_t before = first_users_[name];
    const auto [place, is_new] = contents_.try_emplace(use.array);
    Contents& contents = place->second;
    if (is_new) contents.valid["host"].add(use.array->all());
    const auto push = [&](const std::string& from, const std::string& to, const data::IntervalSet& elements) {
      all.push_back({before, name, from, to, Bytes{elements.count() * use.array->element_size()}});
      contents.valid[to].add(elements);
    };
    data::IntervalSet missing = use.needed.without(contents.valid[here]);
    if (!missing.empty() && here != "host") {
      for (const auto& [id, other] : contents.devices)
        if (id != here && contents.valid[id].contains(missing) &&
            device::reaches(*base::state_of(device), *other)) {
          push(id, here, missing);
          missing.clear();
          break;
        }
    }
    if (!missing.empty()) {
      const data::IntervalSet elsewhere = missing.without(contents.valid["host"]);
      for (const auto& [id, other] : contents.devices) {
        const data::IntervalSet there = elsewhere.common(contents.valid[id]).without(contents.valid["host"]);
        if (!there.empty()) push(id, "host", there);
      }
      if (here != "host") push("host", here, missing);
    }
    if (here != "host") contents.devices[here] = base::state_of(device).get();
    if (use.written.empty()) return;
    for (auto& [id, valid] : contents.valid) valid.remove(use.written);
    contents.valid[here].add(use.written);
  }

  const PlanState& plan_;
  const Compiled& compiled_;
  const Operands& operands_;
  const MemoryNames& names_;
  std::map<const data::ArrayState*, Contents> contents_;
  std::map<std::string, std::size_t> first_users_;
  std::vector<PlanDescription::Copy> downloads_;
};

}  // namespace

PlanDescription shape_of(const PlanState& plan, const Operands& operands, const Dependencies& dependencies) {
  const MemoryNames names(plan.nodes, operands);
  PlanDescription shape;
  shape.name = plan.name;
  for (std::size_t s = 0; s < plan.nodes.size(); ++s) {
    const Job& job = plan.nodes[s].job;
    PlanDescription::Step& step = shape.steps.emplace_back();
    step.name = job.name();
    step.after = dependencies.all[s];
    for (std::size_t c = 0; c < job.size(); ++c) {
      PlanDescription::Call& call = step.calls.emplace_back();
      call.kernel = job[c].name();
      call.items = job[c].items();
      for (std::size_t a = 0; a < job[c].arguments().size(); ++a) {
        const Operand& operand = operands.at(s, c, a);
        PlanDescription::Argument& argument = call.arguments.emplace_back();
        argument.element = operand.element;
        argument.element_size = operand.size;
        argument.count = operand.count;
        argument.first = operand.offset;
        const auto touched = touched_by(operand);
        argument.memory = touched ? names(*touched) : "value";
        argument.kept_in = touched ? "device" : "parameters";
        argument.access = touched ? operand.access : Access::read;
        if (operand.kind == Operand::Kind::host)
          argument.first = (touched->bytes.first - names.begin_of(*touched)) / operand.size;
      }
    }
  }
  return shape;
}

/// Keeps the decisions about the devices of a step in its record.
void Compiler::keep_decisions(const Placed& placed) const {
  Record& record = *placed.record;
  const std::span<const Choice> choices = record.row->choices;
  record.decisions.clear();
  for (std::size_t i = 0; i < placed.decisions.size(); ++i) {
    Decision decision = placed.decisions[i];
    if (i == placed.chosen) {
      decision.verdict = Candidate::Verdict::ran;
    } else if (decision.is_open()) {
      const bool is_equal = choices[decision.device].equal == choices[placed.device()].equal;
      if (i > placed.chosen || placed.is_pinned || !is_equal) {
        record.decisions.push_back(core_.parts().placer.pass(record, decision.device, record.device));
        continue;
      }
      decision.code = RefusalCode::busy;
    }
    record.decisions.push_back(std::move(decision));
  }
}

void Compiler::describe(const Operands& operands, const Dependencies& dependencies,
                        const PlanMemory& memory) {
  Compiled& to = *compiled_;
  auto plan = std::make_shared<PlanDescription>(shape_of(plan_, operands, dependencies));
  plan->devices = to.description->devices;
  for (std::size_t s = 0; s < plan->steps.size(); ++s) {
    PlanDescription::Step& step = plan->steps[s];
    const Placed& placed = placed_[s];
    const Device& on = device(to.devices[s]);
    step.device = on.id();
    for (PlanDescription::Call& call : step.calls)
      for (PlanDescription::Argument& argument : call.arguments)
        if (argument.kept_in == "device" && on.info().features.has(Feature::host_memory))
          argument.kept_in = "host";
    Record& record = *placed.record;
    record.device = static_cast<std::uint32_t>(to.devices[s]);
    keep_decisions(placed);
    const auto add = [&](const Decision& decision) {
      const AdapterInfo& info = device(decision.device).info();
      const bool is_chosen = decision.verdict == Candidate::Verdict::ran;
      step.candidates.push_back({info.id, info.name, decision.verdict,
                                 !is_chosen         ? core_.parts().explainer.describe(record, decision)
                                 : placed.is_pinned ? base::text("The placement names '{}'.", info.id)
                                                    : core_.parts().explainer.placement_reason(record),
                                 decision.code, to_optional(decision.error()),
                                 core_.parts().explainer.estimate(record, decision.device)});
    };
    for (const Decision& decision : record.decisions)
      if (decision.verdict == Candidate::Verdict::ran) add(decision);
    for (std::size_t c = 0; c < to.executables[s].size(); ++c)
      if (base::state_of(to.executables[s][c])->may_end_loops_early() &&
          !base::programs_of(record.job[c])[0]->has_short_loops())
        step.candidates.front().reason += " " + device::early_loop_ends(record.job[c].name(), on.info());
    for (const Decision& decision : record.decisions)
      if (decision.verdict != Candidate::Verdict::ran) add(decision);
  }
  const MemoryNames names(plan_.nodes, operands);
  Copies copies(plan_, to, operands, names);
  for (std::size_t i = 0; i < to.segments.size(); ++i) {
    std::set<std::size_t> steps;
    for (const Segment::Dispatch& dispatch : to.segments[i].dispatches)
      if (steps.insert(dispatch.step).second) plan->order.push_back(dispatch.step);
    plan->segments.push_back(steps.size());
    copies.add(i, memory.segments[i]);
  }
  plan->copies = std::move(copies.all);
  to.description = std::move(plan);
}

std::string reason_of(const PlanDescription& plan) {
  std::string text;
  for (const PlanDescription::Device& device : plan.devices) {
    const auto steps =
        std::count_if(plan.steps.begin(), plan.steps.end(),
                      [&](const PlanDescription::Step& step) { return step.device == device.id; });
    text += text.empty() ? base::text("'{}' runs {} of {} steps of graph '{}'", device.id, steps,
                                      plan.steps.size(), plan.name)
                         : base::text(", '{}' {}", device.id, steps);
  }
  return text + ".";
}

}  // namespace wye::scheduler
