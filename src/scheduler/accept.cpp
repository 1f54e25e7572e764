// Accepts jobs, and orders each after the jobs that it follows.
#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {

std::shared_ptr<Record> Core::accept(Job&& job, const JobOptions& options) noexcept {
  try {
    return make_record(std::move(job), options);
  } catch (const std::bad_alloc&) {
    const base::Lock lock = base::lock_soon(mutex_);
    ledger_.note_submission();
    ledger_.note_without_result(nullptr);
    return std::shared_ptr<Record>(shared_from_this(), &refused_);
  }
}

std::shared_ptr<Record> Core::make_record(Job&& job, const JobOptions& options) {
  if (options.type) base::set_type(job, *options.type);
  auto record = std::allocate_shared<Record>(base::BlockAllocator<Record>(*records_), shared_from_this(),
                                             std::move(job));
  const Job& kept = record->job;
  record->submitted = clock_->now();
  if (!options.tag.empty() || !options.on.empty()) record->set_labels(options.tag, options.on);
  record->priority = options.priority;
  record->fallback = options.fallback.value_or(options_.fallback);
  record->start_by = options.start_by.at(record->submitted);
  record->time_limit = options.time_limit.value_or(options_.job_time_limit);
  record->has_own_limits = !options.start_by.is_never() || options.time_limit;
  record->size = flight::size_of(kept);
  record->row = &table().preferences.row(kept.type(), record->size);
  for (std::size_t c = 0; c < kept.size(); ++c) {
    for (const Operand& operand : kept[c].arguments()) {
      record->borrows |= flight::borrows_memory(operand);
      record->uses_arrays |= operand.kind == Operand::Kind::array;
    }
  }
  record->kernels = number_of_kernels(kept);
  if (record->uses_arrays || !options.after.empty()) make_dependencies(*record);
  if (!options.after.empty()) {
    record->dependencies->after_failure = options.after_failure;
    record->dependencies->after.reserve(options.after.size());
    for (const Dependency& before : options.after) record->dependencies->after.push_back(before.record_);
  }
  return record;
}

void Core::make_dependencies(Record& record) {
  if (!record.dependencies) record.dependencies = base::make_in<Record::Dependencies>(*dependencies_);
  if (record.uses_arrays && !record.completion) record.completion = make_completion();
}

namespace {

/// Returns the elements of its array that an operand names. Those of a wrong operand end with the
/// array.
data::Interval elements_of(const Operand& operand, const data::ArrayState& array) noexcept {
  const bool fits = operand.size == array.element_size();
  const std::uint64_t first = fits ? std::min(operand.offset, array.count()) : 0;
  return {first, fits && operand.count <= array.count() - first ? first + operand.count : array.count()};
}

/// Makes a job follow the users of its arrays. A job that is `refused`, or gets an error here,
/// follows those of its outputs only, which fail in its turn. No job of this runtime can write an
/// array of another one, or a read-only array. If memory runs out, the job may follow the users of
/// some arrays only.
/// Errors: invalid_argument (an empty handle, an array of another runtime), out_of_memory.
Result<void> follow_arrays(Record& record, const pool::Pool& pool, const SpareErrors& spare,
                           bool refused) try {
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

}  // namespace

/// Makes a job follow those of `JobOptions::after`. If memory runs out, it may follow some of them
/// only.
/// Errors: invalid_argument (a moved-from ticket, a job of another runtime), out_of_memory.
Result<void> Core::follow_jobs(Record& record) const try {
  auto& after = record.dependencies->after;
  auto& predecessors = record.dependencies->predecessors;
  predecessors.reserve(after.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::shared_ptr<Record>& before = after[i];
    if (!before || before->core.get() != this)
      return Error(Errc::invalid_argument,
                   base::text("Dependency {} of {} is {}.", i + 1, record.object(),
                              before ? "a job of another runtime" : "a ticket that was moved from"));
    if (auto completion = before->followed()) predecessors.add(std::move(completion));
  }
  return {};
} catch (const std::bad_alloc&) {
  return spare_.out_of_memory;
}

/// Returns the failure of a job that a record follows, if the record fails with it. All of them
/// have settled. In a chain the error names the job that failed, not each of its followers.
std::optional<Error> Core::failure_before(Record& record) const noexcept {
  const auto all = std::move(record.dependencies->after);
  if (record.dependencies->after_failure == AfterFailure::run) return std::nullopt;
  const auto failed = std::find_if(all.begin(), all.end(), [](const auto& before) { return before->error; });
  if (failed == all.end()) return std::nullopt;
  const Record& before = **failed;
  record.failed_as_follower = true;
  return error_or(spare_.cancelled, [&] {
    return before.failed_as_follower
               ? *before.error
               : before.error->with_context(base::text("while other jobs waited for {}", before.object()));
  });
}

/// Keeps the number of waiting jobs below its limit: waits, refuses `record` or drops another job,
/// as `when_full` says. Releases `lock` meanwhile. Returns the error of a job that is refused.
std::optional<Error> Core::make_room(base::Lock& lock, const Record& record) noexcept {
  const auto has_room = [&] { return closing_ || queued_ < options_.max_queued; };
  if (options_.when_full == WhenFull::wait && !has_room()) {
    ++waiting_for_room_;
    const bool in_time = room_.wait(lock, *clock_, record.start_by, has_room);
    --waiting_for_room_;
    if (in_time) return std::nullopt;
    return error_or(spare_.timed_out, [&] {
      return Error(
          Errc::timed_out,
          base::text("{} did not start in time: the limit of waiting jobs was reached (max_queued = {}).",
                     record.subject(), options_.max_queued));
    });
  }
  while (!has_room()) {
    const std::shared_ptr<Record> last = options_.when_full == WhenFull::drop_lowest
                                             ? std::static_pointer_cast<Record>(ready_.take_last(record))
                                             : nullptr;
    if (!last)
      return error_or(spare_.full, [&] {
        return Error(Errc::over_budget,
                     base::text("{} was refused: the limit of waiting jobs is reached (max_queued = {}).",
                                record.subject(), options_.max_queued));
      });
    lock.unlock();
    settle(*last, State::queued, error_or(spare_.full, [&] {
      return Error(
          Errc::over_budget,
          base::text("{} was dropped for {}: the limit of waiting jobs is reached (max_queued = {}).",
                     last->subject(), record.object(), options_.max_queued));
    }));
    lock.lock();
  }
  return std::nullopt;
}

/// Accepts a record into the order of jobs, within the limit of waiting jobs if `is_bounded`.
/// Returns the lock of this scheduler if the record can run at once; otherwise no lock: it waits
/// for predecessors or has settled.
base::Lock Core::enter(const std::shared_ptr<Record>& record, bool is_bounded) noexcept {
  std::optional<Error> error = to_optional(record->job.error());
  try {
    if (auto checked = flight::check_operands(record->job); !checked && !error)
      error = std::move(checked).error();
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  Record::Dependencies* const dependencies = record->dependencies.get();
  if (!error && dependencies && !dependencies->after.empty())
    if (auto ok = follow_jobs(*record); !ok) error = std::move(ok).error();
  try {
    record->line = line_of(*record);
    record->may_share = !error && may_share(*record);
  } catch (const std::bad_alloc&) {  // any line serves: the devices are considered again when the job runs
  }
  // A job follows all of its arrays under one lock: otherwise two jobs could each wait for the
  // other.
  base::Lock lock = base::lock_soon(mutex_);
  try {
    record->tag_state = ready_.tags().enter(record->tag());
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  if (is_bounded && !error) error = make_room(lock, *record);
  record->sequence = ++sequence_;
  ledger_.note_submission();
  ++queued_;
  try {
    record->type_metrics = &ledger_.row_of(record->job.type());
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  if (closing_)
    error = error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} was submitted after the scheduler was closed.", record->subject()));
    });
  // The outputs of a job that is refused fail in its turn: a job after it must not read old contents.
  if (record->uses_arrays) {
    auto followed =
        record->plan_run ? follow_plan(*record) : follow_arrays(*record, *pool_, spare_, error.has_value());
    if (!followed && !error) error = std::move(followed).error();
  }
  if (!dependencies || dependencies->predecessors.empty()) {
    if (!error && (!dependencies || dependencies->after.empty())) return lock;
    lock.unlock();
    if (!error) error = failure_before(*record);
    if (!error) return base::lock_soon(mutex_);
    settle(*record, State::queued, std::move(error));
    return {};
  }
  lock.unlock();
  record->self = record;
  record->state = State::waiting;
  if (error) settle(*record, State::waiting, std::move(error));
  dependencies->predecessors.when_all_complete(&Core::on_predecessors_complete, record.get());
  return {};
}

/// Queues a record whose predecessors are complete. In a chain of records that settle without
/// running, each completion releases the next record: the loop keeps the stack flat.
void Core::on_predecessors_complete(void* object) noexcept {
  thread_local Record* first = nullptr;
  thread_local Record* last = nullptr;
  auto* const released = static_cast<Record*>(object);
  if (first) {
    last = last->dependencies->next_released = released;
    return;
  }
  for (first = last = released; first;) {
    const std::shared_ptr<Record> record = std::move(first->self);
    Core& core = *record->core;
    record->dependencies->predecessors.clear();
    // Once the record is queued, a thread that waits for it may run it.
    auto error = core.failure_before(*record);
    if (error) core.settle(*record, State::waiting, std::move(error));
    if (!record->advance(State::waiting, State::queued))
      core.release_followers(*record);
    else
      core.make_ready(base::lock_soon(core.mutex_), record);
    first = record->dependencies->next_released;
  }
}

/// Releases the followers of a record that has settled while it waited for its predecessors, once
/// these are complete. Called when either has happened; the second call has an effect.
void Core::release_followers(Record& record) noexcept {
  if (record.dependencies->is_half_over.exchange(true)) complete_arrays(record);
}

/// Completes a record that has settled as a user of its arrays, which releases its followers.
void Core::complete_arrays(Record& record) noexcept {
  fail_outputs(record);
  // Otherwise the end of the last record of a chain would end all records before it, one in the
  // other.
  if (record.dependencies) record.dependencies->after.clear();
  if (record.completion) record.completion->complete();
}

/// Fails the outputs of a record that has settled with an error, and releases their arrays.
void Core::fail_outputs(Record& record) noexcept {
  if (!record.dependencies) return;
  auto& outputs = record.dependencies->outputs;
  if (record.error)
    for (const Record::Output& output : outputs) output.array->fail(*record.error, output.elements);
  outputs.clear();
}

void Core::submit(const std::shared_ptr<Record>& record) noexcept {
  if (origin_.is_inherited()) return;  // every call on the ticket returns this error
  if (record->is_settled) return;
  // A job must not wait for the jobs that wait for it.
  if (base::Lock lock = enter(record, !runs_job())) make_ready(std::move(lock), record);
}

Result<Outcome> Core::run_here(const std::shared_ptr<Record>& record) {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (record->is_settled) return record->result();
  if (base::Lock lock = enter(record, false)) {  // its caller waits anyway
    record->started = record->submitted;         // one reading of the clock for both
    if (!run_if_room(lock, *record)) {
      record->started = {};
      make_ready(std::move(lock), record);
    }
  }
  return wait(*record, Deadline::never());
}

}  // namespace wye::scheduler
