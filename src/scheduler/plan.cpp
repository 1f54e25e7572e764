// Plans: how they are made, and how their arguments change.
#include "scheduler/plan.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"

namespace wye::inline v0 {
namespace scheduler {
namespace {

/// Returns the job that stands for the runs of a graph: it has the name, and no arguments.
Job job_for_runs(const std::vector<GraphNode>& nodes, std::string_view name, WorkloadType type) {
  if (nodes.empty() || nodes.front().job.size() == 0)
    return Job::failed(std::string(name), type, base::invalid("The graph has no call."));
  return Job::sequence(std::string(name), type, Call(base::programs_of(nodes.front().job[0]), {}));
}

template <class F>
bool any_operand(const std::vector<GraphNode>& nodes, F is_wanted) {
  for (const GraphNode& node : nodes)
    for (std::size_t c = 0; c < node.job.size(); ++c)
      for (const Operand& operand : node.job[c].arguments())
        if (is_wanted(operand)) return true;
  return false;
}

/// Why an operand cannot replace another one, as the rest of a sentence that begins with the
/// argument; nothing if it can.
using ReplacementError = std::optional<std::string>;

ReplacementError element_error(const Operand& old, const Operand& operand) {
  const bool is_known = old.element != ElementType::opaque && operand.element != ElementType::opaque;
  if (old.size == operand.size && (!is_known || old.element == operand.element)) return std::nullopt;
  return base::text(" is of {} ({} bytes); it is replaced by {} ({} bytes).", name(old.element), old.size,
                    name(operand.element), operand.size);
}

ReplacementError count_error(const Operand& old, const Operand& operand) {
  if (old.count == operand.count) return std::nullopt;
  return base::text(" has {} elements; it is replaced by {} elements.", old.count, operand.count);
}

ReplacementError host_error(const Operand& old, const Operand& operand) {
  if (auto wrong = element_error(old, operand)) return wrong;
  if (auto wrong = count_error(old, operand)) return wrong;
  if (!operand.data && operand.count != 0) return " is replaced by a null pointer.";
  if (writes(old.access) && !writes(operand.access)) return " is written; it is replaced by constant memory.";
  return std::nullopt;
}

ReplacementError array_error(const Operand& old, const Operand& operand, const PlanState& plan) {
  if (!operand.object) return " is replaced by an empty array handle.";
  if (auto wrong = element_error(old, operand)) return wrong;
  if (operand.count == AnyArray::beyond) return " is replaced by a slice that ends beyond its array.";
  if (auto wrong = count_error(old, operand)) return wrong;
  const auto& array = static_cast<const data::ArrayState&>(*operand.object);
  if (array.pool().get() != &plan.core->pool()) return " is replaced by an array of another runtime.";
  if (writes(old.access) && array.is_read_only()) return " is written; it is replaced by a read-only array.";
  return std::nullopt;
}

ReplacementError buffer_error(const Operand& old, const Operand& operand) {
  if (auto wrong = element_error(old, operand)) return wrong;
  if (auto wrong = count_error(old, operand)) return wrong;
  const auto *before = device::buffer_of(old), *after = device::buffer_of(operand);
  if (!after) return " is replaced by an empty buffer handle.";
  if (before->device() == after->device()) return std::nullopt;
  return base::text(" is a buffer of '{}'; it is replaced by one of '{}'.", before->device()->info().id,
                    after->device()->info().id);
}

ReplacementError replacement_error(const Operand& old, const Operand& operand, const PlanState& plan) {
  if (old.kind != operand.kind)
    return base::text(" is {}; it cannot be replaced by {}.", device::name(old.kind),
                      device::name(operand.kind));
  switch (old.kind) {
    case Operand::Kind::value: return element_error(old, operand);
    case Operand::Kind::host: return host_error(old, operand);
    case Operand::Kind::array: return array_error(old, operand, plan);
    case Operand::Kind::buffer: return buffer_error(old, operand);
    default: return base::text(" is {}, which cannot be replaced.", device::name(old.kind));
  }
}

}  // namespace

PlanState::PlanState(std::shared_ptr<Core> in, std::vector<GraphNode> all, const PlanOptions& options,
                     Fallback otherwise)
    : core(std::move(in)),
      name(options.name),
      on(options.on),
      fallback(options.fallback.value_or(otherwise)),
      one_silicon(options.one_silicon),
      type(options.type),
      nodes(std::move(all)),
      numbers(nodes),
      job(job_for_runs(nodes, name, type)),
      borrows(any_operand(nodes, flight::borrows_memory)) {}

Result<std::shared_ptr<PlanState>> Core::compile(const GraphState& graph, const PlanOptions& options) try {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (graph.error) return *graph.error;
  if (const base::Lock lock = queue_.hold(); queue_.is_closing_locked())
    return Error(Errc::closed,
                 base::text("Graph '{}' was compiled after the scheduler was closed.", options.name));
  auto plan = std::make_shared<PlanState>(shared_from_this(), graph.nodes, options, parts_.options.fallback);
  const bool has_other_memory = any_operand(plan->nodes, [](const Operand& operand) {
    return flight::borrows_memory(operand) ||
           (operand.kind != Operand::Kind::host && operand.kind != Operand::Kind::array &&
            operand.kind != Operand::Kind::value);
  });
  if (has_other_memory) plan->order = data::ArrayState::make(parts_.pool, {}, 1, ElementType::uint8, 1);
  // A plan stays where its steps are placed now: lost devices are opened again first.
  pool::Pool& pool = *parts_.pool;
  for (std::size_t d = 0; d < pool.fleet().size(); ++d) pool.note_loss(d);
  (void)pool.recover_lost(true);
  Compiler compiler(*plan, options.deadline.at(parts_.provider->clock()));
  auto snapshot = compiler.compile(std::make_shared<const Replacements>(),
                                   options.placement ? &*options.placement : nullptr);
  if (!snapshot) return std::move(snapshot).error();
  plan->snapshot = *std::move(snapshot);
  return plan;
} catch (const std::bad_alloc&) {
  return parts_.spare.out_of_memory;
}

/// Replaces an argument, for runs from now on.
Result<void> replace(PlanState& plan, std::size_t step, std::size_t call, std::size_t argument,
                     Operand operand) {
  if (step >= plan.nodes.size())
    return base::invalid(
        base::text("Graph '{}' has no step {}; it has {} steps.", plan.name, step, plan.nodes.size()));
  const Job& job = plan.nodes[step].job;
  const auto where = [&] { return base::text("step {} '{}' of graph '{}'", step, job.name(), plan.name); };
  if (call >= job.size())
    return base::invalid(
        base::text("There is no call {} in {}; it has {} calls.", call, where(), job.size()));
  const std::size_t count = job[call].arguments().size();
  if (argument >= count)
    return base::invalid(base::text("There is no argument {} in {}; '{}' has {} arguments, numbered from 0.",
                                    argument, where(), job[call].name(), count));
  const Operand& old = job[call].arguments()[argument];
  if (auto wrong = replacement_error(old, operand, plan))
    return base::invalid(base::text("Argument {} of {}{}", argument, where(), *wrong));
  operand.access = old.access;
  if (old.element != ElementType::opaque) operand.element = old.element;
  const bool is_memory = operand.kind != Operand::Kind::value;
  for (;;) {
    const std::shared_ptr<const PlanSnapshot> before = plan.current();
    auto replacements = std::make_shared<Replacements>(*before->replacements);
    const std::size_t number = plan.numbers.first(step, call) + argument;
    auto one = std::find_if(replacements->all.begin(), replacements->all.end(),
                            [&](const Replacement& other) { return other.number == number; });
    if (one == replacements->all.end())
      one = replacements->all.insert(one, Replacement{number, step, call, argument, 0, {}});
    replacements->version = one->version = plan.next_version();
    one->operand = operand;
    auto after = std::make_shared<PlanSnapshot>(*before);
    if (is_memory) {
      const Operands operands(plan.nodes, plan.numbers, *replacements);
      if (const auto other = misplaced_user(plan.nodes, operands, before->compiled->position, step, operand))
        return base::invalid(base::text(
            "Argument {} of {} is replaced by memory that step {} '{}' uses in another order. Compile the "
            "graph with it.",
            argument, where(), *other, plan.nodes[*other].job.name()));
      after->arrays = std::make_shared<const ArrayUses>(find_array_uses(plan.nodes, operands));
      auto memory = find_memory(plan, *before->compiled, operands, before->memory.get());
      if (!memory && memory.error() != Errc::device_lost)
        return std::move(memory).error().with_context(base::text("as argument {} of {}", argument, where()));
      after->memory = memory ? *std::move(memory) : nullptr;  // the next run places the steps again
    }
    after->replacements = std::move(replacements);
    if (is_memory && after->memory)
      if (auto ok = check_call(plan, *after, step, call); !ok && ok.error() != Errc::device_lost)
        return ok.error().with_context(base::text("as argument {} of {}", argument, where()));
    const base::Lock lock(plan.mutex);
    if (plan.snapshot != before) continue;
    plan.snapshot = std::move(after);
    return {};
  }
}

}  // namespace scheduler

Result<Plan> Graph::compile(const Scheduler& scheduler, const PlanOptions& options) const {
  auto plan = base::state_of(scheduler)->compile(*state_, options);
  if (!plan) return std::move(plan).error();
  return detail::Internals::make<Plan>(*std::move(plan));
}

Plan::Plan(std::shared_ptr<scheduler::PlanState> state) : state_(std::move(state)) {}

Ticket Plan::run(const JobOptions& options) {
  scheduler::Core& core = *state_->core;
  auto record = core.accept(state_, options);
  core.submit(record);
  return Ticket(std::move(record));
}

Result<void> Plan::set_operand(std::size_t step, std::size_t call, std::size_t argument,
                               detail::Operand operand) {
  if (const Error* inherited = state_->core->origin().error()) return *inherited;
  try {
    return scheduler::replace(*state_, step, call, argument, std::move(operand));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to replace an argument.");
  }
}

PlanDescription Plan::description() const {
  if (state_->core->origin().is_inherited()) return {};
  const base::Lock lock(state_->mutex);
  PlanDescription description = *state_->snapshot->compiled->description;
  description.changes = state_->changes;
  return description;
}

}  // namespace wye
