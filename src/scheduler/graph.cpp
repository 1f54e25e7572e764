// Graphs: their steps, and the order that follows from dependencies and from memory.
#include <wye/scheduler/graph.hpp>

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/buffer.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0 {
namespace scheduler {
namespace {

std::uint64_t address_of(const void* object) {
  return std::uint64_t{reinterpret_cast<std::uintptr_t>(object)};
}

template <class F>
void each_argument(std::span<const GraphNode> nodes, F f) {
  for (std::size_t s = 0; s < nodes.size(); ++s)
    for (std::size_t c = 0; c < nodes[s].job.size(); ++c)
      for (std::size_t a = 0; a < nodes[s].job[c].arguments().size(); ++a) f(s, c, a);
}

void sort_once(std::vector<std::size_t>& steps) {
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
}

/// Returns the names of steps that follow each other, each after the one before it. There are some
/// among those that are not `placed`.
std::string cycle_text(std::span<const GraphNode> nodes, const Dependencies& dependencies,
                       const std::vector<bool>& placed) {
  const auto unplaced = [&](std::size_t step) { return !placed[step]; };
  const auto before = [&](std::size_t step) {
    const auto& all = dependencies.all[step];
    return *std::find_if(all.begin(), all.end(), unplaced);
  };
  std::vector<bool> seen(nodes.size());
  std::size_t step =
      static_cast<std::size_t>(std::find(placed.begin(), placed.end(), false) - placed.begin());
  while (!seen[step]) seen[step] = true, step = before(step);
  std::string text;
  std::size_t next = step;
  do {
    const std::size_t previous = before(next);
    text += base::text("{}step {} '{}' follows step {} '{}'", text.empty() ? "" : ", ", next,
                       nodes[next].job.name(), previous, nodes[previous].job.name());
    next = previous;
  } while (next != step);
  return text;
}

Result<void> check_acyclic(std::span<const GraphNode> nodes, const Dependencies& dependencies) {
  std::vector<std::vector<std::size_t>> followers(nodes.size());
  std::vector<std::size_t> open(nodes.size()), ready;
  for (std::size_t s = 0; s < nodes.size(); ++s) {
    open[s] = dependencies.all[s].size();
    for (const std::size_t before : dependencies.all[s]) followers[before].push_back(s);
    if (open[s] == 0) ready.push_back(s);
  }
  std::vector<bool> placed(nodes.size());
  std::size_t count = 0;
  for (; !ready.empty(); ++count) {
    const std::size_t step = ready.back();
    ready.pop_back();
    placed[step] = true;
    for (const std::size_t next : followers[step])
      if (--open[next] == 0) ready.push_back(next);
  }
  if (count == nodes.size()) return {};
  return base::invalid(
      base::text("Steps of the graph follow each other: {}.", cycle_text(nodes, dependencies, placed)));
}

}  // namespace

std::optional<Touched> touched_by(const Operand& operand) {
  const std::uint64_t first = operand.offset * operand.size;
  const data::Interval bytes{first, first + operand.bytes().count};
  switch (operand.kind) {
    case Operand::Kind::host: {
      const std::uint64_t begin = address_of(operand.data);
      return Touched{{operand.kind, 0}, {begin, begin + operand.bytes().count}, operand.access};
    }
    case Operand::Kind::array:
    case Operand::Kind::buffer:
      return Touched{{operand.kind, address_of(operand.object.get())}, bytes, operand.access};
    case Operand::Kind::scratch: return Touched{{operand.kind, operand.id}, bytes, operand.access};
    case Operand::Kind::address:
      return Touched{{Operand::Kind::buffer, address_of(operand.object.get())},
                     {0, device::buffer_of(operand)->bytes().count},
                     operand.access};
    case Operand::Kind::value:
    case Operand::Kind::none: break;
  }
  return std::nullopt;
}

ArgumentNumbers::ArgumentNumbers(std::span<const GraphNode> nodes) {
  for (const GraphNode& node : nodes) {
    steps_.push_back(calls_.size());
    for (std::size_t c = 0; c < node.job.size(); ++c) {
      calls_.push_back(size_);
      size_ += node.job[c].arguments().size();
    }
  }
}

Operands::Operands(std::span<const GraphNode> nodes, const ArgumentNumbers& numbers,
                   const Replacements& replacements)
    : numbers_(&numbers) {
  all_.reserve(numbers.size());
  each_argument(nodes, [&](std::size_t s, std::size_t c, std::size_t a) {
    all_.push_back(&nodes[s].job[c].arguments()[a]);
  });
  for (const Replacement& one : replacements.all) all_[one.number] = &one.operand;
}

Result<Dependencies> find_dependencies(std::span<const GraphNode> nodes, const Operands& operands) {
  struct User {
    data::Interval bytes;
    bool writes = false;
    std::size_t step = 0;
  };
  std::map<Memory, std::vector<User>> users;
  Dependencies found;
  found.all.resize(nodes.size());
  found.by_request.resize(nodes.size());
  each_argument(nodes, [&](std::size_t s, std::size_t c, std::size_t a) {
    const auto touched = touched_by(operands.at(s, c, a));
    if (!touched || touched->bytes.empty()) return;
    const bool writes = wye::writes(touched->access);
    std::vector<User>& before = users[touched->memory];
    for (const User& user : before)
      if ((writes || user.writes) && user.step != s && user.bytes.overlaps(touched->bytes))
        found.all[s].push_back(user.step);
    if (writes)  // followers of this step follow those
      std::erase_if(before,
                    [&](const User& user) { return user.step != s && touched->bytes.contains(user.bytes); });
    before.push_back({touched->bytes, writes, s});
  });
  for (std::size_t s = 0; s < nodes.size(); ++s) {
    sort_once(found.all[s]);
    const std::size_t implied = found.all[s].size();
    for (const std::size_t before : nodes[s].after)
      if (!std::binary_search(found.all[s].begin(),
                              found.all[s].begin() + static_cast<std::ptrdiff_t>(implied), before))
        found.by_request[s].push_back(before);
    sort_once(found.by_request[s]);
    found.all[s].insert(found.all[s].end(), found.by_request[s].begin(), found.by_request[s].end());
    sort_once(found.all[s]);
  }
  if (auto ok = check_acyclic(nodes, found); !ok) return std::move(ok).error();
  return found;
}

std::optional<std::size_t> misplaced_user(std::span<const GraphNode> nodes, const Operands& operands,
                                          std::span<const std::size_t> position, std::size_t step,
                                          const Operand& operand) {
  const auto mine = touched_by(operand);
  std::optional<std::size_t> misplaced;
  if (!mine) return misplaced;
  each_argument(nodes, [&](std::size_t s, std::size_t c, std::size_t a) {
    if (misplaced || s == step) return;
    const auto other = touched_by(operands.at(s, c, a));
    if (!other || other->memory != mine->memory || !other->bytes.overlaps(mine->bytes)) return;
    if (!writes(other->access) && !writes(mine->access)) return;
    if ((s < step) != (position[s] < position[step])) misplaced = s;
  });
  return misplaced;
}

ArrayUses find_array_uses(std::span<const GraphNode> nodes, const Operands& operands) {
  struct Pieces {
    std::shared_ptr<data::ArrayState> array;
    data::IntervalSet read, written;
    std::vector<data::Interval> writes;  // of each operand once
    bool is_read_empty = false;          // an operand of no elements orders its users too
  };
  std::map<const void*, Pieces> parts;
  ArrayUses found;
  data::IntervalSet host;
  std::map<const void*, data::IntervalSet> buffers;
  each_argument(nodes, [&](std::size_t s, std::size_t c, std::size_t a) {
    const Operand& operand = operands.at(s, c, a);
    const data::Interval elements{operand.offset, operand.offset + operand.count};
    if (operand.kind == Operand::Kind::host) {
      const std::uint64_t begin = address_of(operand.data);
      host.add({begin, begin + operand.bytes().count});
    }
    if (operand.kind == Operand::Kind::buffer)
      buffers[operand.object.get()].add({elements.first * operand.size, elements.last * operand.size});
    if (operand.kind != Operand::Kind::array) return;
    Pieces& of = parts[operand.object.get()];
    of.array = std::static_pointer_cast<data::ArrayState>(operand.object);
    of.is_read_empty |= elements.empty();
    if (!writes(operand.access)) return of.read.add(elements);
    of.written.add(elements);
    if (reads(operand.access)) of.read.add(elements);
    if (std::find(of.writes.begin(), of.writes.end(), elements) == of.writes.end())
      of.writes.push_back(elements);
  });
  for (auto& [object, of] : parts) {
    data::IntervalSet all = of.read;
    all.add(of.written);
    found.size += Bytes{all.count() * of.array->element_size()};
    for (const data::Interval& one : of.written) {
      const auto pieces = std::count_if(of.writes.begin(), of.writes.end(),
                                        [&](data::Interval part) { return part.overlaps(one); });
      found.uses.push_back({of.array, one, Access::read_write, static_cast<std::size_t>(pieces) + 1});
    }
    for (const data::Interval& one : of.read.without(of.written))
      found.uses.push_back({of.array, one, Access::read});
    if (of.is_read_empty && of.written.empty() && of.read.empty())
      found.uses.push_back({of.array, {0, 0}, Access::read});
    if (!of.written.empty()) found.outputs.push_back({of.array, of.written});
  }
  found.size += Bytes{host.count()};
  for (const auto& [object, bytes] : buffers) found.size += Bytes{bytes.count()};
  return found;
}

}  // namespace scheduler

GraphStep::GraphStep(std::shared_ptr<scheduler::GraphState> graph, std::size_t number)
    : graph_(std::move(graph)), number_(number) {}

GraphStep GraphStep::after(const GraphStep& step) const {
  scheduler::GraphState& graph = *graph_;
  if (graph.error) return *this;
  try {
    if (step.graph_ != graph_)
      graph.error = base::invalid(base::text("Step {} '{}' follows a step of another graph (number {}).",
                                             number_, graph.nodes[number_].job.name(), step.number_));
    else if (step.number_ == number_)
      graph.error = base::invalid(
          base::text("Step {} '{}' of the graph follows itself.", number_, graph.nodes[number_].job.name()));
    else
      graph.nodes[number_].after.push_back(step.number_);
  } catch (const std::bad_alloc&) {
    graph.error = Error(Errc::out_of_memory, "The host has no memory for a dependency of a graph.");
  }
  return *this;
}

Graph::Graph() : state_(std::make_shared<scheduler::GraphState>()) {}

std::size_t Graph::size() const noexcept { return state_->nodes.size(); }

GraphStep Graph::add(Job job) {
  try {
    state_->nodes.push_back({std::move(job)});
  } catch (const std::bad_alloc&) {
    if (!state_->error)
      state_->error = Error(Errc::out_of_memory, "The host has no memory for a step of a graph.");
    return {state_, state_->nodes.size()};
  }
  return {state_, state_->nodes.size() - 1};
}

}  // namespace wye
