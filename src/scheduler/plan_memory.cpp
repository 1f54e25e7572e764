// The memory of plans.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
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

/// The devices of scratch memory, and the ranks of the first and the last step that use it.
struct Life {
  Bytes bytes;
  std::set<std::size_t> devices = {};
  std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;
};
/// By the number of the scratch memory.
using Lives = std::map<std::uint64_t, Life>;

Lives find_lives(const PlanState& plan, const Compiled& compiled, const Operands& operands) {
  Lives lives;
  for (std::size_t s = 0; s < plan.nodes.size(); ++s)
    for (std::size_t c = 0; c < plan.nodes[s].job.size(); ++c)
      for (std::size_t a = 0; a < plan.nodes[s].job[c].arguments().size(); ++a) {
        const Operand& operand = operands.at(s, c, a);
        if (operand.kind != Operand::Kind::scratch) continue;
        Life& life = lives[operand.id];
        life.bytes = std::max(life.bytes, Bytes{(operand.offset + operand.count) * operand.size});
        life.devices.insert(compiled.devices[s]);
        life.first = std::min(life.first, compiled.rank[s]);
        life.last = std::max(life.last, compiled.rank[s]);
      }
  return lives;
}

/// Memory of a device for one scratch memory at a time.
struct Block {
  std::size_t device = 0;
  Bytes bytes;
  std::size_t free_from = 0;  // a rank
  std::vector<std::uint64_t> users = {};
};

/// Returns the smallest free block that is large enough, otherwise the largest one; null if none is
/// free.
Block* find_block(std::vector<Block>& blocks, const Life& life) {
  Block* best = nullptr;
  for (Block& block : blocks) {
    if (block.device != *life.devices.begin() || block.free_from > life.first) continue;
    const bool fits = block.bytes >= life.bytes, best_fits = best && best->bytes >= life.bytes;
    if (!best || (fits ? !best_fits || block.bytes < best->bytes : !best_fits && block.bytes > best->bytes))
      best = &block;
  }
  return best;
}

/// Divides blocks among the scratch memory that one device uses.
std::vector<Block> share_blocks(const Lives& lives) {
  std::vector<std::pair<std::size_t, std::uint64_t>> by_start;
  for (const auto& [id, life] : lives)
    if (life.devices.size() == 1) by_start.emplace_back(life.first, id);
  std::sort(by_start.begin(), by_start.end());
  std::vector<Block> blocks;
  for (const auto& [start, id] : by_start) {
    const Life& life = lives.at(id);
    Block* block = find_block(blocks, life);
    if (!block) block = &blocks.emplace_back(Block{*life.devices.begin(), {}});
    block->bytes = std::max(block->bytes, life.bytes);
    block->free_from = life.last + 1;
    block->users.push_back(id);
  }
  return blocks;
}

/// Reserves the memory of one plan.
/// Threads: one thread at a time.
class Reservation {
 public:
  Reservation(const std::shared_ptr<pool::Pool>& pool, const PlanState& plan, Compiled& compiled)
      : pool_(pool), plan_(plan), to_(compiled) {}

  Result<void> make(const Operands& operands) {
    const Lives lives = find_lives(plan_, to_, operands);
    if (auto ok = make_scratch(lives); !ok) return ok;
    blocks_ = share_blocks(lives);
    add_sums(operands);
    if (auto ok = open_accounts(); !ok) return ok;
    if (auto ok = make_replicas(); !ok) return ok;
    if (auto ok = allocate_blocks(); !ok) return ok;
    describe();
    return {};
  }

 private:
  const Device& device(std::size_t index) const { return to_.of_pool[index]; }
  std::shared_ptr<silicon::MemoryAccount> account_of(std::size_t index) const {
    return pool_->accounts().of(*base::state_of(device(index)));
  }

  /// Makes an array of the scratch memory that several devices use.
  Result<void> make_scratch(const Lives& lives) {
    for (const auto& [id, life] : lives) {
      PlanScratch& scratch = to_.scratch[id];
      scratch.bytes = life.bytes;
      if (life.devices.size() == 1) continue;
      auto array = data::ArrayState::make(pool_, {}, life.bytes.count, ElementType::opaque, 1);
      if (auto failure = array->failure()) return *std::move(failure);
      scratch.array = std::move(array);
    }
    return {};
  }

  /// Finds the replicas of arrays, and adds up the memory on each device.
  void add_sums(const Operands& operands) {
    std::map<std::size_t, std::set<std::pair<std::byte*, std::byte*>>> regions;
    for (const Segment& segment : to_.segments) {
      sums_.try_emplace(segment.device);
      const Job job = job_of(plan_, to_, segment, operands);
      const auto [arrays, host] = flight::Binding(job, device(segment.device)).operands();
      for (const flight::Region& region : host) regions[segment.device].insert({region.first, region.last});
      for (const flight::Binding::Use& use : arrays) replicas_.insert({segment.device, use.array});
    }
    for (const auto& [index, array] : replicas_)
      if (!array->has_replica_on(*base::state_of(device(index)))) sums_[index].arrays += array->bytes();
    for (const auto& [index, all] : regions)
      for (const auto& [first, last] : all)
        sums_[index].host += Bytes{static_cast<std::uint64_t>(last - first)};
    for (const Block& block : blocks_) sums_[block.device].scratch += block.bytes;
  }

  /// Refuses a plan that never fits into an account.
  Result<void> check_size(std::size_t index, const PlanDescription::Device& sum) const {
    for (const silicon::MemoryAccount* account = account_of(index).get(); account;
         account = account->parent().get())
      if (account->limit() < sum.total())
        return Error(Errc::over_budget,
                     base::text("Graph '{}' needs {} on '{}' ({}), over the limit of its {} ({}).",
                                plan_.name, to_string(sum.total()), device(index).id(), text_of(sum),
                                name(account->level()), to_string(account->limit())));
    return {};
  }

  Result<void> open_accounts() {
    to_.accounts.assign(pool_->fleet().size(), nullptr);
    for (const auto& [index, sum] : sums_) {
      if (auto ok = check_size(index, sum); !ok) return ok;
      to_.accounts[index] = std::make_shared<silicon::MemoryAccount>(
          base::text("graph '{}'", plan_.name), silicon::MemoryAccount::no_limit, silicon::AccountLevel::tag,
          account_of(index));
    }
    return {};
  }

  Result<void> make_replicas() {
    for (const auto& [index, array] : replicas_) {
      if (device(index).info().features.has(Feature::host_memory)) {
        if (auto charged = array->charge_host(); !charged) return failed(index, charged.error());
      } else if (auto placed = array->on_device(*base::state_of(device(index)), {}); !placed) {
        return failed(index, placed.error());
      }
    }
    return {};
  }

  Result<void> allocate_blocks() {
    for (const Block& block : blocks_) {
      auto buffer = base::state_of(device(block.device))
                        ->allocate({.bytes = block.bytes,
                                    .use = device::MemoryUse::device,
                                    .account = to_.accounts[block.device]});
      if (!buffer) return failed(block.device, buffer.error());
      for (const std::uint64_t id : block.users) to_.scratch[id].buffer = *buffer;
    }
    return {};
  }

  void describe() {
    auto description = std::make_shared<PlanDescription>();
    for (auto& [index, sum] : sums_) {
      sum.id = device(index).id();
      sum.name = device(index).info().name;
      description->devices.push_back(std::move(sum));
    }
    to_.description = std::move(description);
  }

  static std::string text_of(const PlanDescription::Device& sum) {
    return base::text("arrays {}, host memory {}, scratch {}", to_string(sum.arrays), to_string(sum.host),
                      to_string(sum.scratch));
  }
  Error failed(std::size_t index, Error error) {
    const PlanDescription::Device& sum = sums_[index];
    return std::move(error).with_context(base::text("while reserving {} on '{}' for graph '{}' ({})",
                                                    to_string(sum.total()), device(index).id(), plan_.name,
                                                    text_of(sum)));
  }

  const std::shared_ptr<pool::Pool>& pool_;
  const PlanState& plan_;
  Compiled& to_;
  std::vector<Block> blocks_;
  std::set<std::pair<std::size_t, data::ArrayState*>> replicas_;  // by device of the pool
  std::map<std::size_t, PlanDescription::Device> sums_;           // by device of the pool
};

}  // namespace

Result<void> reserve_memory(const std::shared_ptr<pool::Pool>& pool, const PlanState& plan,
                            Compiled& compiled, const Operands& operands) {
  return Reservation(pool, plan, compiled).make(operands);
}

Result<std::shared_ptr<const PlanMemory>> find_memory(PlanState& plan, const Compiled& compiled,
                                                      const Operands& operands, const PlanMemory* before) {
  const auto device = [&](std::size_t index) -> const Device& { return compiled.of_pool[index]; };
  auto memory = std::make_shared<PlanMemory>();
  memory->version = plan.next_version();
  std::map<std::pair<std::size_t, std::pair<std::byte*, std::byte*>>, std::shared_ptr<device::BufferBase>> of;
  for (std::size_t i = 0; i < compiled.segments.size(); ++i) {
    const Segment& segment = compiled.segments[i];
    const Job job = job_of(plan, compiled, segment, operands);
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
          buffer = take([&](std::size_t other, const flight::Region& old) {
            if (other != on || old.bytes() != region.bytes()) return false;
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
                base::text("while reserving host memory of graph '{}' on '{}'", plan.name, device(on).id()));
          buffer = *std::move(made);
        }
        region.buffer = buffer;
      }
    }
  }
  return std::shared_ptr<const PlanMemory>(std::move(memory));
}

}  // namespace wye::scheduler
