// Accepts jobs, and orders each after the jobs that it follows.
#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "data/array_state.hpp"
#include "scheduler/core.hpp"
#include "scheduler/followers.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0::scheduler {
namespace {

constexpr std::size_t most_kept_records = 1024;

/// Returns why the options of a run are wrong, if they are.
std::optional<Error> option_error(const JobOptions& options, const PlanState& plan) {
  const std::string_view wrong = !options.on.empty()       ? "on"
                                 : options.fallback        ? "fallback"
                                 : options.type            ? "type"
                                 : !options.prefer.empty() ? "prefer"
                                                           : "";
  if (wrong.empty()) return std::nullopt;
  return base::invalid(
      base::text("The option '{}' is set for a run of graph '{}'; it is an option of "
                 "Graph::compile.",
                 wrong, plan.name));
}

}  // namespace

Core::Core(std::shared_ptr<pool::Pool> pool, std::shared_ptr<device::ExecutableProvider> provider,
           SchedulerOptions options)
    : records_(new base::BlockPool(most_kept_records)),
      completions_(new base::BlockPool(most_kept_records)),
      dependencies_(new base::BlockPool(most_kept_records)),
      parts_(std::move(pool), std::move(provider), std::move(options),
             [this](const Table& table) { queue_.add_places(table); }),
      queue_(parts_, runner_),
      workers_(parts_, queue_, runner_),
      runner_(parts_, queue_, workers_),
      refused_(std::shared_ptr<Core>(std::shared_ptr<void>(), this),  // does not own this
               Job::failed("job", workload_types::custom, parts_.spare.out_of_memory)) {
  refused_.state = State::settled;
  refused_.is_settled = true;
  refused_.error = parts_.spare.out_of_memory;
  parts_.store.update();
}

Core::~Core() = default;

std::shared_ptr<Record> Core::accept(Job&& job, const JobOptions& options) noexcept {
  try {
    return make_record(std::move(job), options);
  } catch (const std::bad_alloc&) {
    return without_memory();
  }
}

std::shared_ptr<Record> Core::without_memory() noexcept {
  queue_.note_without_memory();
  return {shared_from_this(), &refused_};
}

std::shared_ptr<Record> Core::accept(const std::shared_ptr<PlanState>& plan,
                                     const JobOptions& options) noexcept {
  try {
    // A lock of the plan may be held for ever there. Every call on the ticket returns this error.
    if (origin_.is_inherited()) return make_record(Job(plan->job), options);
    auto wrong = option_error(options, *plan);
    auto record =
        make_record(wrong ? Job::failed(plan->name, plan->type, *std::move(wrong)) : Job(plan->job), options);
    record->fallback = plan->fallback;
    const std::shared_ptr<const PlanSnapshot> snapshot = plan->current();
    record->plan_run = std::make_unique<PlanRun>(PlanRun{plan, snapshot, snapshot->arrays});
    record->size = snapshot->arrays->size;
    record->borrows = plan->borrows;
    record->uses_arrays = plan->order || !snapshot->arrays->uses.empty();
    if (record->uses_arrays) make_dependencies(*record);
    return record;
  } catch (const std::bad_alloc&) {
    return without_memory();
  }
}

std::shared_ptr<Record> Core::make_record(Job&& job, const JobOptions& options) {
  if (options.type) base::set_type(job, *options.type);
  if (auto wrong = parts_.placer.find_preference_error(options.prefer); wrong && !job.error())
    job = Job::failed(std::string(job.name()), job.type(), *std::move(wrong));
  auto record = std::allocate_shared<Record>(base::BlockAllocator<Record>(*records_), shared_from_this(),
                                             std::move(job));
  const Job& kept = record->job;
  record->submitted = parts_.clock.now();
  if (!options.tag.empty() || !options.on.empty()) record->set_labels(options.tag, options.on);
  record->priority = options.priority;
  record->fallback = options.fallback.value_or(parts_.options.fallback);
  record->start_by = options.start_by.at(record->submitted);
  record->time_limit = options.time_limit.value_or(parts_.options.job_time_limit);
  record->has_own_limits = !options.start_by.is_never() || options.time_limit;
  record->size = flight::size_of(kept);
  record->row = &preferred(kept.type(), record->size);
  if (!options.prefer.empty() && !kept.error())
    record->row = &parts_.placer.preferring(*record->row, options.prefer);
  for (std::size_t c = 0; c < kept.size(); ++c) {
    for (const Operand& operand : kept[c].arguments()) {
      record->borrows |= flight::borrows_memory(operand);
      record->uses_arrays |= operand.kind == Operand::Kind::array;
    }
  }
  record->kernels = number_of_kernels(kept);
  record->named = {kept.type(), kept.name(), stored_number_of_kernels(kept)};
  if (record->uses_arrays || !options.after.empty()) make_dependencies(*record);
  if (!options.after.empty()) {
    record->dependencies->after_failure = options.after_failure;
    record->dependencies->after.reserve(options.after.size());
    for (const Dependency& before : options.after) record->dependencies->after.push_back(before.record_);
  }
  return record;
}

void Core::make_dependencies(Record& record) {
  if (!record.dependencies)
    record.dependencies = base::make_in<Record::Dependencies>(*dependencies_, *dependencies_);
  if (record.uses_arrays && !record.completion) record.completion = make_completion();
}

/// Checks a record, has it follow the jobs of `JobOptions::after`, and finds its line. Returns its
/// error.
std::optional<Error> Core::examine(Record& record) noexcept {
  std::optional<Error> error = to_optional(record.job.error());
  try {
    if (auto checked = flight::check_operands(record.job); !checked && !error)
      error = std::move(checked).error();
  } catch (const std::bad_alloc&) {
    error = parts_.spare.out_of_memory;
  }
  if (!error && record.dependencies && !record.dependencies->after.empty())
    if (auto ok = follow_jobs(record, parts_.spare); !ok) error = std::move(ok).error();
  try {
    record.line = runner_.line_of(record);
    record.may_share = !error && runner_.may_share(record);
  } catch (const std::bad_alloc&) {  // any line serves: the devices are considered again when the job runs
  }
  return error;
}

/// Puts a record, which has the error `refused` or none, into the order of jobs, within the limit of
/// waiting jobs if `is_bounded`. Releases `lock` if it waits for room. Returns its error.
std::optional<Error> Core::order(base::Lock& lock, Record& record, bool is_bounded,
                                 std::optional<Error> refused) noexcept {
  std::optional<Error> error = queue_.enter(lock, record, is_bounded, std::move(refused));
  // The outputs of a job that is refused fail in its turn: a job after it must not read old contents.
  if (record.uses_arrays) {
    auto followed = follow_arrays(record, *parts_.pool, parts_.spare, error.has_value());
    if (!followed && !error) error = std::move(followed).error();
  }
  return error;
}

/// Has a record that follows others wait for them, or settles it. Returns false if it is ready: it
/// follows none, or those that it follows are complete.
bool Core::wait_or_settle(const std::shared_ptr<Record>& record, std::optional<Error> error) noexcept {
  Record::Dependencies* const dependencies = record->dependencies.get();
  if (!dependencies || dependencies->predecessors.empty()) {
    if (!error && dependencies && !dependencies->after.empty()) error = failure_before(*record, parts_.spare);
    if (!error) return false;
    runner_.settle(*record, State::queued, std::move(error));
    return true;
  }
  record->self = record;
  record->state = State::waiting;
  if (error) runner_.settle(*record, State::waiting, std::move(error));
  dependencies->predecessors.when_all_complete(&Core::on_predecessors_complete, record.get());
  return true;
}

/// Accepts a record into the order of jobs. Returns the lock of this scheduler if the record can run
/// at once; otherwise no lock: it waits for predecessors or has settled.
base::Lock Core::enter(const std::shared_ptr<Record>& record, bool is_bounded) noexcept {
  std::optional<Error> error = examine(*record);
  // A job follows all of its arrays under one lock: otherwise two jobs could each wait for the
  // other.
  base::Lock lock = queue_.hold();
  error = order(lock, *record, is_bounded, std::move(error));
  if (!error && !record->follows()) return lock;
  lock.unlock();
  if (wait_or_settle(record, std::move(error))) return {};
  return queue_.hold();
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
    auto error = failure_before(*record, core.parts_.spare);
    if (error) core.runner_.settle(*record, State::waiting, std::move(error));
    if (!record->advance(State::waiting, State::queued))
      release_followers(*record);
    else
      core.push(core.queue_.hold(), record);
    first = record->dependencies->next_released;
  }
}

/// Adds a record that is ready, under `lock`, and releases the lock. Settles it if it cannot run.
void Core::push(base::Lock lock, const std::shared_ptr<Record>& record) noexcept {
  std::optional<Error> error = queue_.add_locked(record);
  if (!error) return workers_.wake(std::move(lock));
  lock.unlock();
  runner_.settle(*record, State::queued, std::move(error));
}

void Core::submit(const std::shared_ptr<Record>& record) noexcept {
  if (origin_.is_inherited()) return;  // every call on the ticket returns this error
  if (record->is_settled) return;
  // A job must not wait for the jobs that wait for it.
  if (base::Lock lock = enter(record, !runs_job())) push(std::move(lock), record);
}

void Core::submit(std::span<const std::shared_ptr<Record>> records) noexcept {
  if (origin_.is_inherited()) return;
  std::array<std::optional<Error>, most_submitted> errors;
  std::array<bool, most_submitted> is_left{};
  for (std::size_t i = 0; i < records.size(); ++i)
    if (!records[i]->is_settled) errors[i] = examine(*records[i]);
  base::Lock lock = queue_.hold();
  std::size_t begun = 0;  // records before it run, wait for others, or have settled
  const auto begin_up_to = [&](std::size_t end) {
    workers_.wake(std::move(lock));
    for (; begun < end; ++begun)
      if (is_left[begun] && !wait_or_settle(records[begun], std::move(errors[begun])))
        push(queue_.hold(), records[begun]);
  };
  for (std::size_t i = 0; i < records.size(); ++i) {
    Record& record = *records[i];
    if (record.is_settled) continue;
    if (queue_.is_full_locked()) {  // it may wait until those before it have run
      begin_up_to(i);
      lock = queue_.hold();
    }
    errors[i] = order(lock, record, !runs_job(), std::move(errors[i]));
    if (!errors[i] && !record.follows()) errors[i] = queue_.add_locked(records[i]);
    is_left[i] = errors[i] || record.follows();
  }
  begin_up_to(records.size());
}

Result<Outcome> Core::run_here(const std::shared_ptr<Record>& record) {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (record->is_settled) return record->result();
  if (base::Lock lock = enter(record, false)) {  // its caller waits anyway
    record->started = record->submitted;         // one reading of the clock for both
    if (!workers_.run_if_room(lock, *record)) {
      record->started = {};
      push(std::move(lock), record);
    }
  }
  return wait(*record, Deadline::never());
}

}  // namespace wye::scheduler
