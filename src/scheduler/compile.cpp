// Compiles graphs: places their steps, builds kernels and reserves memory.
#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <span>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {

namespace {

/// Returns the operand of scratch memory that is an array of bytes, because several devices use it.
Operand in_array(const Operand& scratch, const std::shared_ptr<data::ArrayState>& array) {
  Operand operand = scratch;
  operand.kind = Operand::Kind::array;
  operand.element = array->element();
  operand.size = 1;
  operand.offset = scratch.offset * scratch.size;
  operand.count = scratch.count * scratch.size;
  operand.object = array;
  return operand;
}

/// Returns the calls of a segment as one job, with all memory in arrays, buffers and host memory.
Job job_of(const PlanState& plan, const Compiled& compiled, const Segment& segment,
           const Operands& operands) {
  std::vector<Call> calls;
  calls.reserve(segment.dispatches.size());
  for (const Segment::Dispatch& dispatch : segment.dispatches) {
    Call& call = calls.emplace_back(plan.nodes[dispatch.step].job[dispatch.call]);
    for (std::size_t a = 0; a < call.arguments().size(); ++a) {
      const Operand& operand = operands.at(dispatch.step, dispatch.call, a);
      const auto scratch =
          operand.kind == Operand::Kind::scratch ? compiled.scratch.find(operand.id) : compiled.scratch.end();
      const bool is_shared = scratch != compiled.scratch.end() && scratch->second.array;
      call.arguments()[a] = is_shared ? in_array(operand, scratch->second.array) : operand;
    }
  }
  Call first = std::move(calls.front());
  calls.erase(calls.begin());
  return Job::sequence(plan.name, plan.type, std::move(first), std::move(calls));
}

/// Several segments use shared scratch memory in turns. As arrays of bytes they are transferred as
/// a whole.
void widen(flight::Binding::Use& use) {
  const data::IntervalSet all(use.array->all());
  if (!use.needed.empty() || !use.written.contains(all)) use.needed = all, use.reads = true;
  if (!use.written.empty()) use.written = all;
}

}  // namespace

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
          if (array.pool().get() != core_.pool_.get())
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
    if (auto nowhere = core_.placer_.find_target_error(plan_.on)) return *std::move(nowhere);
  for (std::size_t s = 0; s < plan_.nodes.size(); ++s) {
    const std::string_view on = placement ? std::string_view() : std::string_view(plan_.on);
    Placed& placed = placed_.emplace_back(Placed{core_.make_record(job_of(s, operands), {.on = on})});
    placed.record->has_own_limits = true;  // variants are chosen, not measured
    for (const std::size_t device : placed.record->row->devices)
      if (device < devices_.size())  // otherwise it was added meanwhile
        placed.decisions.push_back(core_.placer_.consider(*placed.record, device));
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
                                core_.explainer_.describe(*placed.record, *there)));
      placed.chosen = static_cast<std::size_t>(there - placed.decisions.begin());
      placed.is_pinned = true;
      continue;
    }
    if (placed.choose([](std::size_t) { return true; })) continue;
    std::string reasons;
    bool is_lost = false;
    for (const Decision& decision : placed.decisions) {
      reasons += base::text(" {}: {}", device(decision.device).id(),
                            core_.explainer_.describe(*placed.record, decision));
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
          core_.plan_counts_->on(decision.device) < core_.plan_counts_->on(member))
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
      auto step = core_.preparer_.select(*placed.record, placed.device(), job[c], ready_by_);
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
        core_.log_.write(LogLevel::warning, "scheduler",
                         base::text("{} falls back to '{}': {}", step_text(s), device(placed.device()).id(),
                                    error.sentence()));
      has_moved = true;
      break;
    }
  }
  if (!has_moved) {
    compiled_->use = {core_.plan_counts_, compiled_->devices};
    return true;
  }
  if (plan_.one_silicon)
    if (auto ok = place_on_one_silicon(); !ok) return std::move(ok).error();
  return false;
}

/// Divides the steps into segments. Each takes all steps that can run on its device by then. Within
/// a segment, the steps that can run at the same time are neighbours: fewer barriers are between
/// them.
void Compiler::arrange(const Dependencies& dependencies) {
  const std::size_t count = plan_.nodes.size();
  Compiled& to = *compiled_;
  to.segments.clear();
  to.position.assign(count, 0);
  to.segment_of.assign(count, 0);
  to.command_of.assign(count, 0);
  std::vector<std::vector<std::size_t>> followers(count);
  std::vector<std::size_t> open(count), level(count);
  std::set<std::size_t> ready;
  for (std::size_t s = 0; s < count; ++s) {
    open[s] = dependencies.all[s].size();
    for (const std::size_t before : dependencies.all[s]) followers[before].push_back(s);
    if (open[s] == 0) ready.insert(s);
  }
  std::size_t position = 0, rank = 0;
  to.rank.assign(count, 0);
  while (!ready.empty()) {
    const std::size_t number = to.segments.size();
    Segment& segment = to.segments.emplace_back();
    segment.device = to.devices[*ready.begin()];
    std::vector<std::size_t> steps;
    for (auto it = ready.begin(); it != ready.end();) {
      const bool is_here = to.devices[*it] == segment.device;
      if (is_here) steps.push_back(*it);
      it = is_here ? ready.erase(it) : std::next(it);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::size_t step = steps[i];
      to.segment_of[step] = number;
      for (const std::size_t before : dependencies.all[step])
        if (to.segment_of[before] == number) level[step] = std::max(level[step], level[before] + 1);
      for (const std::size_t next : followers[step]) {
        if (--open[next] != 0) continue;
        if (to.devices[next] == segment.device)
          steps.push_back(next);
        else
          ready.insert(next);
      }
    }
    std::sort(steps.begin(), steps.end(), [&](std::size_t a, std::size_t b) {
      return level[a] != level[b] ? level[a] < level[b] : a < b;
    });
    std::size_t last_ordered = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::size_t step = steps[i];
      if (i == 0 || level[step] != level[steps[i - 1]]) ++rank;
      to.rank[step] = rank;
      to.position[step] = position++;
      to.command_of[step] = segment.dispatches.size();
      const auto needs_barrier = [&](std::size_t before) {
        return to.segment_of[before] == number && to.command_of[before] >= last_ordered;
      };
      const auto& requested = dependencies.by_request[step];
      const bool is_ordered = std::any_of(requested.begin(), requested.end(), needs_barrier);
      if (is_ordered) last_ordered = segment.dispatches.size();
      for (std::size_t c = 0; c < plan_.nodes[step].job.size(); ++c)
        segment.dispatches.push_back({step, c, is_ordered && c == 0});
    }
  }
  to.recorded.clear();
  to.recorded.resize(to.segments.size());
}

/// Refuses a plan that never fits into an account.
Result<void> Compiler::check_size(std::size_t index, Bytes arrays, Bytes host, Bytes scratch) const {
  const Bytes all = arrays + host + scratch;
  for (const silicon::MemoryAccount* account =
           core_.pool().accounts().of(*base::state_of(device(index))).get();
       account; account = account->parent().get())
    if (account->limit() < all)
      return Error(
          Errc::over_budget,
          base::text("Graph '{}' needs {} on '{}' (arrays {}, host memory {}, scratch {}), over the limit "
                     "of its {} ({}).",
                     plan_.name, to_string(all), device(index).id(), to_string(arrays), to_string(host),
                     to_string(scratch), name(account->level()), to_string(account->limit())));
  return {};
}

/// Allocates scratch memory and the replicas of arrays, after it has checked the size of all
/// memory.
Result<void> Compiler::reserve(const Operands& operands) {
  Compiled& to = *compiled_;
  struct Life {
    Bytes bytes;
    std::set<std::size_t> devices = {};
    std::size_t first = ~std::size_t{0}, last = 0;  // ranks
  };
  std::map<std::uint64_t, Life> lives;
  for (std::size_t s = 0; s < plan_.nodes.size(); ++s)
    for (std::size_t c = 0; c < plan_.nodes[s].job.size(); ++c)
      for (std::size_t a = 0; a < plan_.nodes[s].job[c].arguments().size(); ++a) {
        const Operand& operand = operands.at(s, c, a);
        if (operand.kind != Operand::Kind::scratch) continue;
        Life& life = lives[operand.id];
        life.bytes = std::max(life.bytes, Bytes{(operand.offset + operand.count) * operand.size});
        life.devices.insert(to.devices[s]);
        life.first = std::min(life.first, to.rank[s]);
        life.last = std::max(life.last, to.rank[s]);
      }
  /// Memory for one scratch memory at a time.
  struct Block {
    std::size_t device = 0;
    Bytes bytes;
    std::size_t free_from = 0;
    std::vector<std::uint64_t> users = {};
  };
  std::vector<Block> blocks;
  std::vector<std::pair<std::size_t, std::uint64_t>> by_start;
  for (const auto& [id, life] : lives) {
    to.scratch[id].bytes = life.bytes;
    if (life.devices.size() == 1) {
      by_start.emplace_back(life.first, id);
      continue;
    }
    auto array = data::ArrayState::make(core_.pool_, {}, life.bytes.count, ElementType::opaque, 1);
    if (auto failure = array->failure()) return *std::move(failure);
    to.scratch[id].array = std::move(array);
  }
  std::sort(by_start.begin(), by_start.end());
  for (const auto& [start, id] : by_start) {
    const Life& life = lives[id];
    Block* best = nullptr;  // the smallest that is large enough, otherwise the largest
    for (Block& block : blocks) {
      if (block.device != *life.devices.begin() || block.free_from > start) continue;
      const bool fits = block.bytes >= life.bytes, best_fits = best && best->bytes >= life.bytes;
      if (!best || (fits ? !best_fits || block.bytes < best->bytes : !best_fits && block.bytes > best->bytes))
        best = &block;
    }
    if (!best) best = &blocks.emplace_back(Block{*life.devices.begin(), {}});
    best->bytes = std::max(best->bytes, life.bytes);
    best->free_from = life.last + 1;
    best->users.push_back(id);
  }

  std::map<std::size_t, PlanDescription::Device> sums;
  std::set<std::pair<std::size_t, data::ArrayState*>> replicas;
  std::map<std::size_t, std::set<std::pair<std::byte*, std::byte*>>> regions;
  for (const Segment& segment : to.segments) {
    const Device& on = device(segment.device);
    sums.try_emplace(segment.device);
    const Job job = scheduler::job_of(plan_, to, segment, operands);
    const auto [arrays, host] = flight::Binding(job, on).operands();
    for (const flight::Region& region : host) regions[segment.device].insert({region.first, region.last});
    for (const flight::Binding::Use& use : arrays) replicas.insert({segment.device, use.array});
  }
  for (const auto& [index, array] : replicas)
    if (!array->has_replica_on(*base::state_of(device(index)))) sums[index].arrays += array->bytes();
  for (const auto& [index, all] : regions)
    for (const auto& [first, last] : all) sums[index].host += Bytes{static_cast<std::uint64_t>(last - first)};
  for (const Block& block : blocks) sums[block.device].scratch += block.bytes;
  to.accounts.assign(core_.pool().fleet().size(), nullptr);
  const auto context = [&](std::size_t index) {
    const PlanDescription::Device& of = sums[index];
    return base::text("while reserving {} on '{}' for graph '{}' (arrays {}, host memory {}, scratch {})",
                      to_string(of.total()), device(index).id(), plan_.name, to_string(of.arrays),
                      to_string(of.host), to_string(of.scratch));
  };
  for (auto& [index, of] : sums) {
    if (auto ok = check_size(index, of.arrays, of.host, of.scratch); !ok) return ok;
    to.accounts[index] = std::make_shared<silicon::MemoryAccount>(
        base::text("graph '{}'", plan_.name), silicon::MemoryAccount::no_limit, silicon::AccountLevel::tag,
        core_.pool().accounts().of(*base::state_of(device(index))));
  }
  for (const auto& [index, array] : replicas) {
    if (device(index).info().features.has(Feature::host_memory)) {
      if (auto charged = array->charge_host(); !charged) return charged.error().with_context(context(index));
    } else if (auto placed = array->on_device(*base::state_of(device(index)), {}); !placed) {
      return placed.error().with_context(context(index));
    }
  }
  for (const Block& block : blocks) {
    auto buffer = base::state_of(device(block.device))
                      ->allocate({.bytes = block.bytes,
                                  .use = device::MemoryUse::device,
                                  .account = to.accounts[block.device]});
    if (!buffer) return buffer.error().with_context(context(block.device));
    for (const std::uint64_t id : block.users) to.scratch[id].buffer = *buffer;
  }
  auto description = std::make_shared<PlanDescription>();
  for (auto& [index, of] : sums) {
    of.id = device(index).id();
    of.name = device(index).info().name;
    description->devices.push_back(std::move(of));
  }
  to.description = std::move(description);
  return {};
}

Result<std::shared_ptr<const PlanMemory>> Compiler::find_memory(const Compiled& compiled,
                                                                const Operands& operands,
                                                                const PlanMemory* before) {
  devices_ = compiled.of_pool;
  auto memory = std::make_shared<PlanMemory>();
  memory->version = plan_.next_version();
  std::set<const flight::Region*> reused;
  std::map<std::pair<std::size_t, std::pair<std::byte*, std::byte*>>, std::shared_ptr<device::BufferBase>> of;
  for (std::size_t i = 0; i < compiled.segments.size(); ++i) {
    const Segment& segment = compiled.segments[i];
    const Job job = scheduler::job_of(plan_, compiled, segment, operands);
    memory->segments.push_back(flight::Binding(job, device(segment.device)).operands());
    for (flight::Binding::Use& use : memory->segments.back().arrays)
      for (const auto& [id, scratch] : compiled.scratch)
        if (scratch.array.get() == use.array) widen(use);
  }
  // Host memory keeps its buffer. Other host memory gets the buffer of memory that it replaces:
  // runs of such a plan follow each other.
  const auto take = [&](auto matches) -> std::shared_ptr<device::BufferBase> {
    for (std::size_t j = 0; before && j < before->segments.size(); ++j)
      for (const flight::Region& region : before->segments[j].regions)
        if (matches(compiled.segments[j].device, region)) return region.buffer;
    return nullptr;
  };
  for (const bool is_same : {true, false}) {
    for (std::size_t i = 0; i < compiled.segments.size(); ++i) {
      const std::size_t on = compiled.segments[i].device;
      for (flight::Region& region : memory->segments[i].regions) {
        std::shared_ptr<device::BufferBase>& buffer = of[{on, {region.first, region.last}}];
        if (!buffer)
          buffer = take([&](std::size_t device, const flight::Region& old) {
            if (device != on || old.bytes() != region.bytes()) return false;
            if (is_same) return old.first == region.first;
            return std::none_of(of.begin(), of.end(),
                                [&](const auto& used) { return used.second == old.buffer; });
          });
        if (!buffer && !is_same) {
          auto made = base::state_of(device(on))
                          ->allocate({.bytes = Bytes{region.bytes()},
                                      .use = device::MemoryUse::device,
                                      .account = compiled.accounts[on]});
          if (!made)
            return made.error().with_context(
                base::text("while reserving host memory of graph '{}' on '{}'", plan_.name, device(on).id()));
          buffer = *std::move(made);
        }
        region.buffer = buffer;
      }
    }
  }
  return std::shared_ptr<const PlanMemory>(std::move(memory));
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
  arrange(*dependencies);
  if (auto ok = reserve(operands); !ok) return std::move(ok).error();
  if (placement)
    for (const PlanDescription::Device& used : compiled_->description->devices)
      for (const PlanDescription::Device& wanted : placement->devices)
        if (used.id == wanted.id && used.name != wanted.name)
          return Error(Errc::unsupported, base::text("Device '{}' is '{}'; the placement was made for '{}'.",
                                                     used.id, used.name, wanted.name));
  auto memory = find_memory(*compiled_, operands, nullptr);
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
