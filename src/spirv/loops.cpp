#include "spirv/loops.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "spirv/writes.hpp"

namespace wye::inline v0::spirv {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
/// The iterations of a loop that halves or doubles a counter of 64 bits.
constexpr std::uint64_t most_halvings = 65;
constexpr std::uint64_t most_factor = 16;

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? most : result;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? most : result;
}

struct Block {
  std::vector<const Instruction*> body;
  std::vector<Id> next;
};

struct Loop {
  Id header = 0;
  Id merge = 0;
  std::unordered_set<Id> blocks = {};
  std::uint64_t trips = 0;
};

/// How a counter changes in one iteration.
struct Step {
  enum class Kind : std::uint8_t { add, multiply, divide } kind = Kind::add;
  std::int64_t by = 0;
};

/// One function.
class Counter {
 public:
  Counter(const Module& module, const Function& function) : module_(module) {
    for (const Instruction& in : function.body) {
      if (in.op == Op::OpLabel) {
        current_ = in[0];
        order_.push_back(current_);
      } else if (current_ != 0) {
        blocks_[current_].body.push_back(&in);
        note(in);
      }
    }
    for (auto& [label, block] : blocks_)
      if (!block.body.empty()) block.next = targets(*block.body.back());
  }

  /// Finds the loops and their iterations. Returns false if those of a loop have no known bound.
  bool find() {
    for (const Id label : order_) {
      for (const Instruction* in : blocks_[label].body) {
        if (in->op != Op::OpLoopMerge) continue;
        Loop loop{.header = label, .merge = (*in)[0]};
        collect(loop);
        const auto trips = trips_of(loop);
        if (!trips) return false;
        loop.trips = *trips;
        loops_.push_back(std::move(loop));
      }
    }
    return true;
  }

  /// Returns how often a block runs.
  std::uint64_t runs_of(Id block) const {
    std::uint64_t runs = 1;
    for (const Loop& loop : loops_)
      if (loop.blocks.contains(block)) runs = product(runs, loop.trips);
    return runs;
  }
  /// Returns the iterations of its loops.
  std::uint64_t iterations() const {
    std::uint64_t all = 0;
    for (const Loop& loop : loops_) all = sum(all, runs_of(loop.header));
    return all;
  }
  /// Calls `f(function, number of calls)` for each call.
  template <class F>
  void each_call(F f) const {
    for (const auto& [label, block] : blocks_)
      for (const Instruction* in : block.body)
        if (in->op == Op::OpFunctionCall) f((*in)[2], runs_of(label));
  }

 private:
  void note(const Instruction& in) {
    if (in.op == Op::OpStore) {
      stores_[in[0]].push_back({current_, in[1]});
    } else if (in.op == Op::OpVariable) {
      if (in.size() > 3) stores_[in[1]].push_back({0, in[3]});
    } else if (in.op == Op::OpFunctionCall) {  // a function may write through a pointer
      for (std::size_t i = 3; i < in.size(); ++i) escaped_.insert(in[i]);
    } else if (in.op == Op::OpAccessChain || in.op == Op::OpInBoundsAccessChain ||
               in.op == Op::OpCopyObject) {
      escaped_.insert(in[2]);
    } else if (in.op == Op::OpCopyMemory || in.op == Op::OpCopyMemorySized) {
      escaped_.insert(in[0]);
    }
    switch (in.op) {
      case Op::OpStore:
      case Op::OpCopyMemory:
      case Op::OpCopyMemorySized:
      case Op::OpLoopMerge:
      case Op::OpSelectionMerge:
      case Op::OpBranchConditional:
      case Op::OpSwitch: break;  // without a result
      default: results_.try_emplace(in[1], &in);
    }
  }

  std::vector<Id> targets(const Instruction& end) const {
    switch (end.op) {
      case Op::OpBranch: return {end[0]};
      case Op::OpBranchConditional: return {end[1], end[2]};
      case Op::OpSwitch: {
        std::vector<Id> all;
        for (const Id word : end.operands)  // literals are among them
          if (blocks_.contains(word)) all.push_back(word);
        return all;
      }
      default: return {};
    }
  }

  /// Collects the blocks that are reached from the header and not through the merge block.
  void collect(Loop& loop) const {
    std::vector<Id> open{loop.header};
    loop.blocks.insert(loop.header);
    while (!open.empty()) {
      const auto block = blocks_.find(open.back());
      open.pop_back();
      if (block == blocks_.end()) continue;
      for (const Id next : block->second.next)
        if (next != loop.merge && loop.blocks.insert(next).second) open.push_back(next);
    }
  }

  const Instruction* result(Id id, Op op) const {
    const auto found = results_.find(id);
    return found != results_.end() && found->second->op == op ? found->second : nullptr;
  }
  std::optional<std::uint64_t> number(Id id) const {
    const auto found = module_.numbers.find(id);
    return found == module_.numbers.end() ? std::nullopt : std::optional(found->second);
  }

  /// Returns the condition that every iteration passes, and whether the loop goes on if it is true.
  std::optional<std::pair<Id, bool>> condition(const Loop& loop) const {
    std::unordered_set<Id> seen;
    for (Id at = loop.header; seen.insert(at).second;) {
      const auto block = blocks_.find(at);
      if (block == blocks_.end() || block->second.body.empty()) return std::nullopt;
      const Instruction& end = *block->second.body.back();
      if (end.op == Op::OpBranchConditional) {
        if (end[2] == loop.merge) return std::pair(end[0], true);
        if (end[1] == loop.merge) return std::pair(end[0], false);
        return std::nullopt;
      }
      if (end.op != Op::OpBranch || end[0] == loop.merge) return std::nullopt;
      at = end[0];
    }
    return std::nullopt;
  }

  /// A counter: a variable, or the result of a phi, with its changes.
  struct Counted {
    std::vector<Id> begins = {};  ///< its values before the loop
    std::optional<Step> step = std::nullopt;
  };

  std::optional<Counted> counter(const Loop& loop, Id value) const {
    if (const Instruction* load = result(value, Op::OpLoad)) return variable(loop, (*load)[2]);
    if (const Instruction* phi = result(value, Op::OpPhi)) return phi_of(loop, *phi);
    return std::nullopt;
  }

  std::optional<Counted> variable(const Loop& loop, Id variable) const {
    if (!result(variable, Op::OpVariable) || escaped_.contains(variable)) return std::nullopt;
    const auto stores = stores_.find(variable);
    if (stores == stores_.end()) return std::nullopt;
    Counted counted;
    for (const auto& [block, value] : stores->second) {
      if (!loop.blocks.contains(block)) {
        counted.begins.push_back(value);
        continue;
      }
      if (counted.step) return std::nullopt;  // it is changed twice
      counted.step = step_of(value, [&](Id id) {
        const Instruction* load = result(id, Op::OpLoad);
        return load && (*load)[2] == variable;
      });
      if (!counted.step || !runs_always(loop, block)) return std::nullopt;
    }
    return counted.step ? std::optional(counted) : std::nullopt;
  }

  std::optional<Counted> phi_of(const Loop& loop, const Instruction& phi) const {
    Counted counted;
    for (std::size_t i = 2; i + 1 < phi.size(); i += 2) {
      if (!loop.blocks.contains(phi[i + 1])) {
        counted.begins.push_back(phi[i]);
        continue;
      }
      if (counted.step) return std::nullopt;
      counted.step = step_of(phi[i], [&](Id id) { return id == phi[1]; });
      if (!counted.step) return std::nullopt;
    }
    return counted.step ? std::optional(counted) : std::nullopt;
  }

  /// Returns whether each iteration that does not leave the loop runs `block`: no path from the
  /// header returns to it, or reaches it again, without the block.
  bool runs_always(const Loop& loop, Id block) const {
    if (block == loop.header) return true;
    std::unordered_set<Id> seen{loop.header};
    std::vector<Id> open{loop.header};
    while (!open.empty()) {
      const auto at = blocks_.find(open.back());
      open.pop_back();
      if (at == blocks_.end()) return false;
      for (const Id next : at->second.next) {
        if (next == loop.header) return false;
        if (next != loop.merge && next != block && seen.insert(next).second) open.push_back(next);
      }
    }
    return true;
  }

  /// Returns the step of `next` from the value that `is_counter` recognizes.
  template <class F>
  std::optional<Step> step_of(Id next, F is_counter) const {
    const auto found = results_.find(next);
    if (found == results_.end()) return std::nullopt;
    const Instruction& in = *found->second;
    const bool first = is_counter(in[2]);
    const auto by = number(in[first ? 3 : 2]);
    if (!by || (!first && !is_counter(in[3]))) return std::nullopt;
    switch (in.op) {
      case Op::OpIAdd: return Step{Step::Kind::add, to_signed(*by)};
      case Op::OpISub: return first ? std::optional(Step{Step::Kind::add, -to_signed(*by)}) : std::nullopt;
      case Op::OpIMul:
        return *by >= 2 && *by <= most_factor
                   ? std::optional(Step{Step::Kind::multiply, static_cast<std::int64_t>(*by)})
                   : std::nullopt;
      case Op::OpShiftLeftLogical:
        return first && *by >= 1 && *by <= 4
                   ? std::optional(Step{Step::Kind::multiply, std::int64_t{1} << *by})
                   : std::nullopt;
      case Op::OpUDiv:
      case Op::OpSDiv: return first && *by >= 2 ? std::optional(Step{Step::Kind::divide, 2}) : std::nullopt;
      case Op::OpShiftRightLogical:
        return first && *by >= 1 ? std::optional(Step{Step::Kind::divide, 2}) : std::nullopt;
      default: return std::nullopt;
    }
  }

  /// Numbers of 32 bits are not extended.
  static std::int64_t to_signed(std::uint64_t number) {
    return number <= ~std::uint32_t{0} ? std::int64_t{static_cast<std::int32_t>(number)}
                                       : static_cast<std::int64_t>(number);
  }

  enum class Compare : std::uint8_t { less, less_or_equal, greater, greater_or_equal, not_equal, none };

  static std::pair<Compare, bool> compare_of(Op op) {  // and whether it is signed
    switch (op) {
      case Op::OpULessThan: return {Compare::less, false};
      case Op::OpSLessThan: return {Compare::less, true};
      case Op::OpULessThanEqual: return {Compare::less_or_equal, false};
      case Op::OpSLessThanEqual: return {Compare::less_or_equal, true};
      case Op::OpUGreaterThan: return {Compare::greater, false};
      case Op::OpSGreaterThan: return {Compare::greater, true};
      case Op::OpUGreaterThanEqual: return {Compare::greater_or_equal, false};
      case Op::OpSGreaterThanEqual: return {Compare::greater_or_equal, true};
      case Op::OpINotEqual: return {Compare::not_equal, true};
      default: return {Compare::none, false};
    }
  }
  static Compare opposite(Compare compare) {
    switch (compare) {
      case Compare::less: return Compare::greater_or_equal;
      case Compare::less_or_equal: return Compare::greater;
      case Compare::greater: return Compare::less_or_equal;
      case Compare::greater_or_equal: return Compare::less;
      default: return Compare::none;
    }
  }
  static Compare mirrored(Compare compare) {
    switch (compare) {
      case Compare::less: return Compare::greater;
      case Compare::less_or_equal: return Compare::greater_or_equal;
      case Compare::greater: return Compare::less;
      case Compare::greater_or_equal: return Compare::less_or_equal;
      default: return compare;
    }
  }

  std::optional<std::uint64_t> trips_of(const Loop& loop) const {
    const auto branch = condition(loop);
    if (!branch) return std::nullopt;
    return trips_of(loop, branch->first, branch->second);
  }

  std::optional<std::uint64_t> trips_of(const Loop& loop, Id condition, bool goes_on) const {
    const auto found = results_.find(condition);
    if (found == results_.end()) return std::nullopt;
    const Instruction& in = *found->second;
    if (in.op == (goes_on ? Op::OpLogicalAnd : Op::OpLogicalOr)) {  // either part ends the loop
      const auto a = trips_of(loop, in[2], goes_on), b = trips_of(loop, in[3], goes_on);
      return a && b ? std::optional(std::min(*a, *b)) : a ? a : b;
    }
    auto [compare, is_signed] = compare_of(in.op);
    if (compare == Compare::none) return std::nullopt;
    std::optional<Counted> counted = counter(loop, in[2]);
    Id bound = in[3];
    if (!counted) {
      counted = counter(loop, in[3]);
      bound = in[2];
      compare = mirrored(compare);
    }
    if (!goes_on) compare = opposite(compare);
    const auto limit = number(bound);
    if (!counted || !limit || compare == Compare::none) return std::nullopt;
    return trips_of(*counted, compare, is_signed, *limit);
  }

  std::optional<std::uint64_t> trips_of(const Counted& counted, Compare compare, bool is_signed,
                                        std::uint64_t limit) const {
    const Step step = *counted.step;
    const bool rises = compare == Compare::less || compare == Compare::less_or_equal;
    const bool falls = compare == Compare::greater || compare == Compare::greater_or_equal;
    if (step.kind == Step::Kind::divide) {  // it ends at zero, or at -1 > n with a sign
      const bool ends = (compare == Compare::not_equal && limit == 0) ||
                        (compare == Compare::greater && to_signed(limit) >= 0) ||
                        (compare == Compare::greater_or_equal && to_signed(limit) >= 1);
      return ends ? std::optional(most_halvings) : std::nullopt;
    }
    if (counted.begins.empty()) return std::nullopt;
    std::uint64_t trips = 0;
    for (const Id begin : counted.begins) {
      const auto value = number(begin);
      if (!value) return std::nullopt;
      const std::int64_t from = is_signed ? to_signed(*value) : static_cast<std::int64_t>(*value);
      const std::int64_t to = is_signed ? to_signed(limit) : static_cast<std::int64_t>(limit);
      if (step.kind == Step::Kind::multiply) {
        // With a larger limit the counter may wrap, and the loop goes on.
        constexpr std::int64_t largest = (std::int64_t{1} << 31) - 1;
        if (!rises || from <= 0 || to > largest / step.by || to < 0) return std::nullopt;
        trips = std::max(trips, most_halvings);
        continue;
      }
      if (step.by == 0) return std::nullopt;
      const std::int64_t size = step.by > 0 ? step.by : -step.by;
      std::int64_t distance = 0;
      if (rises && step.by > 0)
        distance = to - from + (compare == Compare::less_or_equal ? 1 : 0);
      else if (falls && step.by < 0)
        distance = from - to + (compare == Compare::greater_or_equal ? 1 : 0);
      else if (compare == Compare::not_equal && (to - from) % step.by == 0 && (to - from) / step.by >= 0)
        distance = step.by > 0 ? to - from : from - to;
      else
        return std::nullopt;
      // A counter that passes the end of its type wraps, and the loop goes on.
      constexpr std::int64_t safe = std::int64_t{1} << 30;
      if (size > safe || to > safe || to < (is_signed ? -safe : 0)) return std::nullopt;
      if (!is_signed && falls && to + (compare == Compare::greater ? 1 : 0) < size) return std::nullopt;
      if (distance > 0) trips = std::max(trips, static_cast<std::uint64_t>((distance + size - 1) / size));
    }
    return trips;
  }

  const Module& module_;
  Id current_ = 0;
  std::vector<Id> order_;
  std::unordered_map<Id, Block> blocks_;
  std::unordered_map<Id, const Instruction*> results_;
  /// The stores to each variable: the block, or 0 for its initial value, and the value.
  std::unordered_map<Id, std::vector<std::pair<Id, Id>>> stores_;
  std::unordered_set<Id> escaped_;  // variables that are changed in other ways
  std::vector<Loop> loops_;
};

}  // namespace

std::optional<std::uint64_t> most_iterations(const Module& module, Id entry) {
  std::unordered_map<Id, Counter> counters;
  for (const Function* function : reachable(module, entry)) {
    const auto [counter, added] = counters.try_emplace(function->id, module, *function);
    if (!counter->second.find()) return std::nullopt;
  }
  // Functions call no function that is calling them.
  std::unordered_map<Id, std::uint64_t> known;
  const auto count = [&](const auto& self, Id function, std::size_t depth) -> std::uint64_t {
    if (const auto found = known.find(function); found != known.end()) return found->second;
    const auto counter = counters.find(function);
    if (counter == counters.end() || depth > counters.size()) return most;
    std::uint64_t iterations = counter->second.iterations();
    counter->second.each_call([&](Id called, std::uint64_t calls) {
      iterations = sum(iterations, product(calls, self(self, called, depth + 1)));
    });
    return known[function] = iterations;
  };
  const std::uint64_t all = count(count, entry, 0);
  return all == most ? std::nullopt : std::optional(all);
}

}  // namespace wye::spirv
