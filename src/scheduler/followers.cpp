#include "scheduler/followers.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns the elements of its array that an operand names. Those of a wrong operand end with the
/// array.
data::Interval elements_of(const Operand& operand, const data::ArrayState& array) noexcept {
  const bool fits = operand.size == array.element_size();
  const std::uint64_t first = fits ? std::min(operand.offset, array.count()) : 0;
  return {first, fits && operand.count <= array.count() - first ? first + operand.count : array.count()};
}

/// Makes a run follow the users of its arrays, and the run before it if they share memory. Throws:
/// std::bad_alloc; it may follow some of them then.
void follow_plan(Record& record) {
  const PlanRun& run = *record.plan_run;
  auto& predecessors = record.dependencies->predecessors;
  auto& outputs = record.dependencies->outputs;
  outputs = run.arrays->outputs;
  std::size_t followed = 0;  // of the outputs: they have the order of the uses
  try {
    if (run.plan->order)
      run.plan->order->follow(Access::read_write, run.plan->order->all(), record.completion, predecessors);
    for (const ArrayUses::Use& use : run.arrays->uses) {
      use.array->follow(use.access, use.elements, record.completion, predecessors, use.pieces);
      if (followed < outputs.size() && outputs[followed].array == use.array && writes(use.access)) ++followed;
    }
  } catch (const std::bad_alloc&) {
    outputs.truncate(followed);  // no other array fails with this run
    throw;
  }
}

}  // namespace

Result<void> follow_arrays(Record& record, const pool::Pool& pool, const SpareErrors& spare,
                           bool refused) try {
  if (record.plan_run) {
    follow_plan(record);
    return {};
  }
  struct Use {
    std::shared_ptr<data::ArrayState> array;
    data::Interval elements;
    Access access = Access::none;
  };
  detail::InlineList<Use, 4> uses;
  Result<void> result;
  const auto refuse = [&](Error error) {
    if (result) result = std::move(error);
    refused = true;
  };
  const Job& job = record.job;
  for (std::size_t c = 0; c < job.size(); ++c) {
    for (std::size_t i = 0; i < job[c].arguments().size(); ++i) {
      const Operand& operand = job[c].arguments()[i];
      if (operand.kind != Operand::Kind::array) continue;
      const auto array = std::static_pointer_cast<data::ArrayState>(operand.object);
      if (!array || array->pool().get() != &pool) {
        refuse(Error(Errc::invalid_argument,
                     base::text("Argument {} of '{}' is {}.", i + 1, job[c].name(),
                                array ? "an array of another runtime" : "an empty array handle")));
        continue;
      }
      if (writes(operand.access) && array->is_read_only()) {
        refuse(data::ArrayState::read_only_error().with_context(
            base::text("as argument {} of '{}'", i + 1, job[c].name())));
        continue;
      }
      const data::Interval elements = elements_of(operand, *array);
      Use* const use = std::find_if(uses.begin(), uses.end(), [&](const Use& other) {
        return other.array == array && other.elements == elements;
      });
      if (use == uses.end())
        uses.push_back({array, elements, operand.access});
      else if (writes(operand.access))
        use->access = Access::read_write;
    }
  }
  auto& outputs = record.dependencies->outputs;
  outputs.reserve(uses.size());
  for (const Use& use : uses) {
    if (refused && !writes(use.access)) continue;
    use.array->follow(use.access, use.elements, record.completion, record.dependencies->predecessors);
    if (!writes(use.access)) continue;
    Record::Output* output = std::find_if(outputs.begin(), outputs.end(), [&](const Record::Output& other) {
      return other.array == use.array;
    });
    if (output == outputs.end()) output = &outputs.emplace_back(Record::Output{use.array});
    output->elements.add(use.elements);
  }
  return result;
} catch (const std::bad_alloc&) {
  return spare.out_of_memory;
}

Result<void> follow_jobs(Record& record, const SpareErrors& spare) try {
  auto& after = record.dependencies->after;
  auto& predecessors = record.dependencies->predecessors;
  predecessors.reserve(after.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::shared_ptr<Record>& before = after[i];
    if (!before || before->core != record.core)
      return Error(Errc::invalid_argument,
                   base::text("Dependency {} of {} is {}.", i + 1, record.object(),
                              before ? "a job of another runtime" : "a ticket that was moved from"));
    if (auto completion = before->followed()) predecessors.add(std::move(completion));
  }
  return {};
} catch (const std::bad_alloc&) {
  return spare.out_of_memory;
}

std::optional<Error> failure_before(Record& record, const SpareErrors& spare) noexcept {
  const auto all = std::move(record.dependencies->after);
  if (record.dependencies->after_failure == AfterFailure::run) return std::nullopt;
  const auto failed = std::find_if(all.begin(), all.end(), [](const auto& before) { return before->error; });
  if (failed == all.end()) return std::nullopt;
  const Record& before = **failed;
  record.dependencies->has_failed_too = true;
  return error_or(spare.cancelled, [&] {
    return before.dependencies && before.dependencies->has_failed_too
               ? *before.error
               : before.error->with_context(base::text("while other jobs waited for {}", before.object()));
  });
}

void fail_outputs(Record& record) noexcept {
  if (!record.dependencies) return;
  auto& outputs = record.dependencies->outputs;
  if (record.error)
    for (const Record::Output& output : outputs) output.array->fail(*record.error, output.elements);
  outputs.clear();
}

void complete_arrays(Record& record) noexcept {
  fail_outputs(record);
  // Otherwise the end of the last record of a chain would end all records before it, one in the
  // other.
  if (record.dependencies) record.dependencies->after.clear();
  if (record.completion) record.completion->complete();
}

void release_followers(Record& record) noexcept {
  if (record.dependencies->is_half_over.exchange(true)) complete_arrays(record);
}

void abandon_outputs(const Record& record) noexcept {
  if (record.plan_run)
    for (const ArrayUses::Use& use : record.plan_run->arrays->uses)
      use.array->abandon(*record.error, use.access);
  const Job& job = record.job;
  for (std::size_t c = 0; c < job.size(); ++c)
    for (const Operand& operand : job[c].arguments())
      if (operand.kind == Operand::Kind::array)
        static_cast<data::ArrayState*>(operand.object.get())->abandon(*record.error, operand.access);
}

}  // namespace wye::scheduler
