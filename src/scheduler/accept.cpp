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
#include "scheduler/followers.hpp"

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
  record->row = &preferred(kept.type(), record->size);
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

/// Checks a record, has it follow the jobs of `JobOptions::after`, and finds its line. Returns its
/// error.
std::optional<Error> Core::examine(Record& record) noexcept {
  std::optional<Error> error = to_optional(record.job.error());
  try {
    if (auto checked = flight::check_operands(record.job); !checked && !error)
      error = std::move(checked).error();
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  if (!error && record.dependencies && !record.dependencies->after.empty())
    if (auto ok = follow_jobs(record, spare_); !ok) error = std::move(ok).error();
  try {
    record.line = line_of(record);
    record.may_share = !error && may_share(record);
  } catch (const std::bad_alloc&) {  // any line serves: the devices are considered again when the job runs
  }
  return error;
}

/// Accepts a record into the order of jobs, within the limit of waiting jobs if `is_bounded`.
/// Returns the lock of this scheduler if the record can run at once; otherwise no lock: it waits
/// for predecessors or has settled.
base::Lock Core::enter(const std::shared_ptr<Record>& record, bool is_bounded) noexcept {
  std::optional<Error> error = examine(*record);
  Record::Dependencies* const dependencies = record->dependencies.get();
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
    auto followed = follow_arrays(*record, *pool_, spare_, error.has_value());
    if (!followed && !error) error = std::move(followed).error();
  }
  if (!dependencies || dependencies->predecessors.empty()) {
    if (!error && (!dependencies || dependencies->after.empty())) return lock;
    lock.unlock();
    if (!error) error = failure_before(*record, spare_);
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
    auto error = failure_before(*record, core.spare_);
    if (error) core.settle(*record, State::waiting, std::move(error));
    if (!record->advance(State::waiting, State::queued))
      release_followers(*record);
    else
      core.make_ready(base::lock_soon(core.mutex_), record);
    first = record->dependencies->next_released;
  }
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
