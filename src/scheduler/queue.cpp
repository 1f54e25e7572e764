// The queue and the threads that serve it.
#include <algorithm>
#include <new>
#include <utility>

#include "base/process.hpp"
#include "base/team.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "device/backend.hpp"
#include "scheduler/binding.hpp"
#include "scheduler/core.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {
namespace {

/// Jobs that this thread is running. A job that waits for another job runs it on top of itself without counting against
/// `concurrent_jobs`: otherwise that many jobs that each wait for one more would deadlock.
thread_local int jobs_on_this_thread = 0;
/// Whose job this thread runs, if it counts against `concurrent_jobs`.
thread_local Core* core_of_this_thread = nullptr;

/// Returns the devices of a pool, as placement sees them.
std::vector<Choice> choices_of(const pool::Pool& pool) {
  std::vector<Choice> choices;
  for (const Device& device : pool.devices())
    choices.push_back({device.info().backend, device::is_emulated(device.info())});
  return choices;
}

/// Orders queue entries. Entries contain their keys, because records are scattered over memory.
constexpr auto later = [](const auto& a, const auto& b) {
  return a.priority != b.priority ? a.priority < b.priority : a.sequence > b.sequence;
};

}  // namespace

Core::Core(std::shared_ptr<pool::Pool> pool, std::shared_ptr<device::ExecutableProvider> provider,
           SchedulerOptions options)
    : pool_(std::move(pool)),
      provider_(std::move(provider)),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : &pool_->clock()),
      log_(options_.log, {.level = LogLevel::trace, .rooms = {}}),
      preferences_(options_.preferences),
      choices_(choices_of(*pool_)),
      orders_(choices_, preferences_),
      completed_on_(pool_->devices().size()) {
  queues_.resize(1 + pool_->devices().size());
  queues_[on_threads].limit = options_.concurrent_jobs;
  for (std::size_t d = 0; d < pool_->devices().size(); ++d) queues_[1 + d].limit = pool_->lanes_per_device();
  refused_.core = std::shared_ptr<Core>(std::shared_ptr<void>(), this);  // does not own this
  refused_.name = "job";
  refused_.state = State::settled;
  refused_.is_settled = true;
  refused_.error = spare_.out_of_memory;
}

Core::~Core() = default;

std::shared_ptr<Record> Core::accept(Job job, const JobOptions& options) noexcept {
  try {
    return make_record(std::move(job), options);
  } catch (const std::bad_alloc&) {
    const base::Lock lock = base::lock_soon(mutex_);
    ++metrics_.submitted;
    ++metrics_.failed;
    return std::shared_ptr<Record>(shared_from_this(), &refused_);
  }
}

std::shared_ptr<Record> Core::make_record(Job job, const JobOptions& options) {
  auto record = base::make_own<Record>();
  record->core = shared_from_this();
  record->submitted = clock_->now();
  record->name = job.name();
  record->tag = options.tag;
  record->on = options.on;
  record->type = options.type.value_or(job.type());
  record->priority = options.priority;
  record->fallback = options.fallback.value_or(options_.fallback);
  record->start_by = options.start_by.at(record->submitted);
  record->time_limit = options.time_limit.value_or(options_.job_time_limit);
  record->has_own_limits = !options.start_by.is_never() || options.time_limit;
  record->size = size_of(job);
  record->after.reserve(options.after.size());
  for (const Dependency& before : options.after) record->after.push_back(before.record_);
  record->after_failure = options.after_failure;
  for (std::size_t c = 0; c < job.size(); ++c) {
    for (std::size_t i = 0; i < job[c].arguments().size(); ++i) {
      record->borrows |= job[c].arguments()[i].kind == Operand::Kind::host;
      record->uses_arrays |= job[c].arguments()[i].kind == Operand::Kind::array;
    }
  }
  if (record->uses_arrays) record->completion = std::make_shared<data::Completion>();
  record->job = std::move(job);
  return record;
}

namespace {

/// Makes a job follow the users of its arrays. If memory runs out, it may follow the users of some arrays
/// only.
/// Errors: invalid_argument (an empty handle, an array of another runtime), out_of_memory.
Result<void> follow_arrays(Record& record, const pool::Pool& pool, const SpareErrors& spare) try {
  std::vector<std::pair<std::shared_ptr<data::ArrayState>, Access>> uses;
  const Job& job = *record.job;
  for (std::size_t c = 0; c < job.size(); ++c) {
    for (std::size_t i = 0; i < job[c].arguments().size(); ++i) {
      const Operand& operand = job[c].arguments()[i];
      if (operand.kind != Operand::Kind::array) continue;
      const auto array = std::static_pointer_cast<data::ArrayState>(operand.object);
      if (!array || array->pool().get() != &pool)
        return Error(Errc::invalid_argument,
                     base::text("Argument {} of '{}' is {}.", i + 1, job[c].name(),
                                array ? "an array of another runtime" : "an empty array handle"));
      if (writes(operand.access) && array->is_read_only())
        return data::ArrayState::read_only_error().with_context(
            base::text("as argument {} of '{}'", i + 1, job[c].name()));
      const auto use =
          std::find_if(uses.begin(), uses.end(), [&](const auto& u) { return u.first == array; });
      if (use == uses.end())
        uses.emplace_back(array, operand.access);
      else if (writes(operand.access))
        use->second = Access::read_write;
    }
  }
  record.outputs.reserve(uses.size());
  for (const auto& [array, access] : uses) {
    array->follow(access, record.completion, record.predecessors);
    if (writes(access)) record.outputs.push_back(array);
  }
  return {};
} catch (const std::bad_alloc&) {
  return spare.out_of_memory;
}

}  // namespace

/// Makes a job follow those of `JobOptions::after`. If memory runs out, it may follow some of them only.
/// Errors: invalid_argument (a moved-from ticket, a job of another runtime), out_of_memory.
Result<void> Core::follow_jobs(Record& record) const try {
  record.predecessors.reserve(record.after.size());
  for (std::size_t i = 0; i < record.after.size(); ++i) {
    const std::shared_ptr<Record>& before = record.after[i];
    if (!before || before->core.get() != this)
      return Error(Errc::invalid_argument,
                   base::text("Dependency {} of {} is {}.", i + 1, record.object(),
                              before ? "a job of another runtime" : "a ticket that was moved from"));
    if (auto completion = before->followed()) record.predecessors.add(std::move(completion));
  }
  return {};
} catch (const std::bad_alloc&) {
  return spare_.out_of_memory;
}

/// Returns the failure of a job that a record follows, if the record fails with it. All of them have settled. In a chain the
/// error names the job that failed, not each of its followers.
std::optional<Error> Core::failure_before(Record& record) const noexcept {
  const std::vector<std::shared_ptr<Record>> all = std::move(record.after);
  if (record.after_failure == AfterFailure::run) return std::nullopt;
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

/// Accepts a record into the order of jobs. Returns whether it can run at once; otherwise it waits for predecessors or has
/// settled.
bool Core::enter(const std::shared_ptr<Record>& record) noexcept {
  std::optional<Error> error = record->job->error();
  try {
    if (auto checked = check_operands(*record->job); !checked && !error) error = std::move(checked).error();
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  if (!error && !record->after.empty())
    if (auto ok = follow_jobs(*record); !ok) error = std::move(ok).error();
  try {
    record->queue = queue_of(*record);
  } catch (const std::bad_alloc&) {  // any queue serves: the devices are considered again when the job runs
  }
  {
    // A job follows all of its arrays under one lock: otherwise two jobs could each wait for the other.
    const base::Lock lock = base::lock_soon(mutex_);
    record->sequence = ++sequence_;
    ++metrics_.submitted;
    ++metrics_.queued;
    try {
      auto row = metrics_.by_type.find(record->type.name);
      if (row == metrics_.by_type.end())
        row = metrics_.by_type.try_emplace(std::string(record->type.name)).first;
      record->type_metrics = &row->second;
    } catch (const std::bad_alloc&) {
      error = spare_.out_of_memory;
    }
    if (closing_)
      error = error_or(spare_.closed, [&] {
        return Error(Errc::closed,
                     base::text("{} was submitted after the scheduler was closed.", record->subject()));
      });
    if (!error && record->uses_arrays)
      if (auto ok = follow_arrays(*record, *pool_, spare_); !ok) error = std::move(ok).error();
  }
  if (record->predecessors.empty()) {
    if (!error) error = failure_before(*record);
    if (!error) return true;
    settle(*record, State::queued, std::move(error));
    return false;
  }
  record->self = record;
  record->state = State::waiting;
  if (error) settle(*record, State::waiting, std::move(error));
  record->predecessors.when_all_complete(&Core::on_predecessors_complete, record.get());
  return false;
}

/// Queues a record whose predecessors are complete. In a chain of records that settle without running, each completion
/// releases the next record: the loop keeps the stack flat.
void Core::on_predecessors_complete(void* object) noexcept {
  thread_local Record* first = nullptr;
  thread_local Record* last = nullptr;
  auto* const released = static_cast<Record*>(object);
  if (first) {
    last = last->next_released = released;
    return;
  }
  for (first = last = released; first;) {
    const std::shared_ptr<Record> record = std::move(first->self);
    Core& core = *record->core;
    record->predecessors.clear();
    std::optional<Error> error = core.failure_before(*record);
    if (!record->advance(State::waiting, State::queued))
      core.complete_arrays(*record, error_or(core.spare_.cancelled, [&] {
        return Error(Errc::cancelled,
                     base::text("{} settled before it could write this array.", record->subject()));
      }));
    else if (error)
      core.settle(*record, State::queued, std::move(error));
    else
      core.make_ready(record);
    first = record->next_released;
  }
}

/// Completes a record as a user of its arrays, which releases its followers. With an error, its outputs fail.
void Core::complete_arrays(Record& record, const std::optional<Error>& error) noexcept {
  if (error)
    for (const auto& array : record.outputs) array->fail(*error);
  record.outputs.clear();
  if (record.completion) record.completion->complete();
}

void Core::submit(const std::shared_ptr<Record>& record) noexcept {
  if (origin_.is_inherited()) return;  // every call on the ticket returns this error
  if (!record->is_settled && enter(record)) make_ready(record);
}

Result<Outcome> Core::run_here(const std::shared_ptr<Record>& record) {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (record->is_settled) return record->result();
  if (enter(record) && !run_if_room(*record)) make_ready(record);
  return wait(*record, Deadline::never());
}

void Core::make_ready(const std::shared_ptr<Record>& record) noexcept {
  base::Lock lock = base::lock_soon(mutex_);
  std::optional<Error> error;
  if (closing_) {
    error = error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} was not ready when the scheduler closed.", record->subject()));
    });
  } else {
    try {
      queues_[record->queue].ready.push_back({record->priority, record->sequence, record});
    } catch (const std::bad_alloc&) {
      error = spare_.out_of_memory;
    }
  }
  if (error) {
    lock.unlock();
    return settle(*record, State::queued, std::move(error));
  }
  std::vector<Ready>& ready = queues_[record->queue].ready;
  std::push_heap(ready.begin(), ready.end(), later);
  ready_.fetch_add(1, std::memory_order_relaxed);
  wake_worker(std::move(lock));
}

/// Returns the queue of the first device that may run a record; that of the threads if the job holds one while it runs.
std::size_t Core::queue_of(const Record& record) const {
  if (record.job->is_build()) return on_threads;
  for (std::size_t device : candidates(record))
    if (consider(record, device).code == RefusalCode::none)
      return pool_->devices()[device].info().features.has(Feature::host_memory) ? on_threads : 1 + device;
  return on_threads;
}

/// Returns whether a further job of a queue may run. A job that waits for a job makes room for one.
bool Core::has_room_locked(std::size_t queue) const noexcept {
  const Queue& of = queues_[queue];
  return of.committed < of.limit + (queue == on_threads ? blocked_ : 0);
}

bool Core::has_work_locked() const noexcept {
  if (first_returned_) return true;
  for (std::size_t q = 0; q < queues_.size(); ++q)
    if (!queues_[q].ready.empty() && has_room_locked(q)) return true;
  return false;
}

std::uint32_t Core::committed_locked() const noexcept {
  std::uint32_t sum = 0;
  for (const Queue& queue : queues_) sum += queue.committed;
  return sum;
}

/// Wakes or starts a worker if there is work, and unlocks. Each worker does the same before it runs a job.
void Core::wake_worker(base::Lock lock) noexcept {
  if (call_worker_locked()) {
    lock.unlock();  // otherwise the woken thread waits for the lock
    return work_.wake_one();
  }
  if (!workers_.empty() || committed_locked() > 0) return;  // a thread that runs a job takes the next one
  // The system refuses a thread. The calling thread runs all queued jobs, and jobs that become ready meanwhile.
  while (!closing_) {
    auto record = pop_locked();
    if (!record) return;
    run_popped(lock, std::move(record), false);
  }
}

/// Starts a worker if there is work that no worker is about to take. Returns true if the caller is to wake a parked one.
bool Core::call_worker_locked() noexcept {
  // Jobs in flight need a worker that notices when they run out of time.
  const bool is_watched = in_flight_ == 0 || parked_ > 0 || spinning_ > 0;
  if (waking_ || spinning_ > 0 || (!has_work_locked() && is_watched)) return false;
  if (parked_ > 0) return waking_ = true;
  if (workers_.size() > options_.concurrent_jobs + blocked_) return false;
  try {
    workers_.reserve(workers_.size() + 1);
    auto worker = base::Worker::start("wye-jobs", [this] { work(); });
    if (worker) workers_.push_back(std::move(*worker));
  } catch (const std::bad_alloc&) {  // like a thread that the system refuses
  }
  return false;
}

/// Runs a job that was taken from a queue, or that has returned, on this thread. `lock` is held before and after.
void Core::run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker) noexcept {
  const std::size_t queue = record->queue;
  if (record->advance(State::queued, State::running)) {
    ++queues_[queue].committed;
    begin_locked(*record);
  } else if (record->advance(State::returned, State::running)) {
    --in_flight_;
  } else if (record->state != State::abandoned || !record->attempt) {
    return;  // it has settled meanwhile
  }
  record->run_by = &jobs_on_this_thread;
  if (is_worker)
    wake_worker(std::move(lock));
  else
    lock.unlock();
  ++jobs_on_this_thread;
  Core* const outer = std::exchange(core_of_this_thread, queue == on_threads ? this : nullptr);
  const Progress progress = run(*record, is_worker);
  core_of_this_thread = outer;
  record.reset();
  --jobs_on_this_thread;
  lock = base::lock_soon(mutex_);
  if (progress == Progress::in_flight) return;
  --queues_[queue].committed;
  job_stopped_.wake_all();
  if (closing_) work_.wake_all();  // workers end with the last job in flight
}

/// Takes the next job of a queue that has room; null if there is none.
std::shared_ptr<Record> Core::pop_locked() {
  for (;;) {
    Queue* next = nullptr;
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      Queue& queue = queues_[q];
      if (queue.ready.empty() || !has_room_locked(q)) continue;
      if (!next || later(next->ready.front(), queue.ready.front())) next = &queue;
    }
    if (!next) return nullptr;
    std::pop_heap(next->ready.begin(), next->ready.end(), later);
    auto record = std::move(next->ready.back().record);
    next->ready.pop_back();
    ready_.fetch_sub(1, std::memory_order_relaxed);
    if (record->state == State::queued) return record;  // otherwise another thread has run or cancelled it
  }
}

void Core::work() noexcept {
  base::Lock lock = base::lock_soon(mutex_);
  const auto is_closed = [&] { return closing_ && in_flight_ == 0 && !first_returned_; };
  const auto has_work = [&] { return is_closed() || waking_ || has_work_locked(); };
  for (;;) {
    if (!has_work()) {
      ++spinning_;
      (void)base::seen_before_parking(lock, [&] { return ready_.load(std::memory_order_relaxed) > 0; });
      --spinning_;
    }
    ++parked_;
    const Instant expiry = first_expiry_locked();
    watched_until_ = std::min(watched_until_, expiry);
    work_.wait(lock, expiry, has_work);
    watched_until_ = Instant::max();
    --parked_;
    waking_ = false;
    return_expired_locked();
    if (is_closed()) return;
    if (Record* const returned = first_returned_) {
      first_returned_ = std::exchange(returned->next_returned, nullptr);
      if (!first_returned_) last_returned_ = &first_returned_;
      ready_.fetch_sub(1, std::memory_order_relaxed);
      run_popped(lock, std::move(returned->self_in_return), true);
    } else if (auto record = pop_locked()) {
      run_popped(lock, std::move(record), true);
    }
  }
}

/// Leaves a record, whose submission reaches `point`, to the worker that completes it then, or at `until` (of the steady
/// clock). Returns false if the record stays with the calling thread; otherwise other threads may have it already.
bool Core::detach(Record& record, const device::TimelinePoint& point, Instant until) noexcept {
  const std::shared_ptr<Record> keep = record.shared_from_this();
  bool is_sooner = false;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    record.run_by = nullptr;
    record.flight_until = until;
    record.self = keep;
    if (!record.advance(State::running, State::in_flight)) return record.self.reset(), false;  // abandoned
    ++in_flight_;
    if (until < watched_until_ && parked_ > 0) is_sooner = waking_ = true;
  }
  if (is_sooner) work_.wake_one();
  try {
    if (point.timeline->when(point.value, [raw = &record](const Error*) { on_return(raw); })) return true;
  } catch (const std::bad_alloc&) {  // like a thread that the system refuses
  }
  const base::Lock lock = base::lock_soon(mutex_);
  record.self.reset();
  if (!record.advance(State::in_flight, State::running)) {  // its time limit has passed, or it was abandoned
    if (std::exchange(record.is_unattended, false)) return_locked(keep);
    return true;
  }
  --in_flight_;
  record.run_by = &jobs_on_this_thread;
  return false;
}

/// Called on a thread of the device: the submission of a record has completed, or has failed.
void Core::on_return(Record* record) noexcept {
  std::shared_ptr<Record> keep = std::move(record->self);
  Core& core = *record->core;
  // A worker may settle the record, and the core may end, as soon as the mutex is free.
  const base::Lock lock = base::lock_soon(core.mutex_);
  if (!record->advance(State::in_flight, State::returned) && !std::exchange(record->is_unattended, false))
    return;  // its time limit has passed
  core.return_locked(std::move(keep));
  if (core.call_worker_locked()) core.work_.wake_one();
}

/// Adds a returned record to the list that workers take from.
void Core::return_locked(std::shared_ptr<Record> record) noexcept {
  Record* const last = record.get();
  last->self_in_return = std::move(record);
  *last_returned_ = last;
  last_returned_ = &last->next_returned;
  ready_.fetch_add(1, std::memory_order_relaxed);
}

/// Takes back the jobs in flight whose time limit has passed.
void Core::return_expired_locked() noexcept {
  if (in_flight_ == 0) return;
  const Instant now = Clock::steady().now();
  for (Record* record = active_; record; record = record->active_next)
    if (record->state == State::in_flight && record->flight_until <= now &&
        record->advance(State::in_flight, State::returned))
      return_locked(record->shared_from_this());
}

Instant Core::first_expiry_locked() const noexcept {
  Instant first = Instant::max();
  if (in_flight_ == 0) return first;
  for (const Record* record = active_; record; record = record->active_next)
    if (record->state == State::in_flight) first = std::min(first, record->flight_until);
  return first;
}

/// Runs a queued job on the calling thread if there is room. Returns whether it did.
bool Core::run_if_room(Record& record) {
  const bool nested = jobs_on_this_thread > 0 || base::Team::inside();
  const std::size_t queue = record.queue;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (!nested && !has_room_locked(queue)) return false;
    if (!record.advance(State::queued, State::running)) return false;
    queues_[queue].committed += nested ? 0 : 1;
    begin_locked(record);
    record.run_by = &jobs_on_this_thread;
  }
  ++jobs_on_this_thread;
  Core* const outer = std::exchange(core_of_this_thread, nested                ? core_of_this_thread
                                                         : queue == on_threads ? this
                                                                               : nullptr);
  run(record, false);
  core_of_this_thread = outer;
  --jobs_on_this_thread;
  if (nested) return true;
  base::Lock lock = base::lock_soon(mutex_);
  --queues_[queue].committed;
  job_stopped_.wake_all();
  wake_worker(std::move(lock));
  return true;
}

/// The slot of the job that this thread runs, if it counts against `concurrent_jobs`. The thread waits for another job, which
/// may need the slot.
class Core::YieldedSlot {
 public:
  YieldedSlot() noexcept : core_(core_of_this_thread) {
    if (!core_) return;
    base::Lock lock = base::lock_soon(core_->mutex_);
    ++core_->blocked_;
    core_->wake_worker(std::move(lock));
  }
  ~YieldedSlot() {
    if (!core_) return;
    const base::Lock lock = base::lock_soon(core_->mutex_);
    --core_->blocked_;
  }
  YieldedSlot(const YieldedSlot&) = delete;

 private:
  Core* const core_;
};

void Core::expire(Record& record) noexcept {
  for (State from : {State::queued, State::waiting})
    settle(record, from, error_or(spare_.timed_out, [&] {
             return Error(Errc::timed_out, base::text("{} did not start in time.", record.subject()));
           }));
}

Result<Outcome> Core::wait(Record& record, Deadline deadline) {
  if (const Error* inherited = origin_.error()) return *inherited;
  const Instant until = base::parked_until(*clock_, deadline.at(*clock_));
  // A thread without a deadline runs the job itself.
  if (deadline.is_never()) run_if_room(record);
  if (record.is_settled) return record.result();
  const auto is_settled = [&] { return record.is_settled.load(); };
  const Instant start_by = base::parked_until(*clock_, record.start_by);
  if (until > Clock::steady().now()) (void)base::seen_before_parking(is_settled);
  const YieldedSlot slot;
  base::Lock lock(record.mutex);
  if (!record.gate.wait(lock, std::min(until, start_by), is_settled)) {
    lock.unlock();
    if (start_by <= until) {
      expire(record);  // a job that has just started continues
      lock.lock();
      record.gate.wait(lock, until, is_settled);
    } else {
      lock.lock();
    }
    if (!record.is_settled)
      return error_or(spare_.timed_out, [&] {
        return Error(Errc::timed_out,
                     base::text("{} has not completed yet; it continues.", record.subject()));
      });
  }
  lock.unlock();
  return record.result();
}

/// The records that one call of `wait_any` waits for.
class Core::AnyOf {
 public:
  explicit AnyOf(std::span<const std::shared_ptr<Record>> records) noexcept : records_(records) {}
  AnyOf(const AnyOf&) = delete;
  ~AnyOf() {
    for (const auto& record : records_) {
      const base::Lock lock(record->mutex);
      std::erase(record->any_waits, &any_);
    }
  }
  /// Has every record that settles notify this.
  void watch() {
    for (const auto& record : records_) {
      const base::Lock lock(record->mutex);
      if (record->is_settled) return any_.notify();
      record->any_waits.push_back(&any_);
    }
  }
  bool wait(Instant until) noexcept {
    base::Lock lock(any_.mutex);
    return any_.gate.wait(lock, until, [&] { return any_.any_settled; });
  }

 private:
  std::span<const std::shared_ptr<Record>> records_;
  AnyWait any_;
};

Result<std::size_t> Core::wait_any(std::span<const std::shared_ptr<Record>> records, Deadline deadline) {
  for (const auto& record : records)
    if (const Error* inherited = record->core->origin_.error()) return *inherited;
  const Clock& clock = records.front()->core->clock();
  const Instant until = base::parked_until(clock, deadline.at(clock));
  AnyOf any(records);
  any.watch();
  const YieldedSlot slot;
  for (bool any_settled = false; !any_settled;) {
    Instant wake = until;
    for (const auto& record : records)
      if (record->state == State::queued || record->state == State::waiting)
        wake = std::min(wake, base::parked_until(*record->core->clock_, record->start_by));
    any_settled = any.wait(wake);
    if (any_settled) break;
    const Instant now = Clock::steady().now();
    for (const auto& record : records)
      if (base::parked_until(*record->core->clock_, record->start_by) <= now) record->core->expire(*record);
    any_settled = any.wait(Instant::min());
    if (!any_settled && until <= now)
      return Error(Errc::timed_out,
                   base::text("None of {} jobs has completed yet; they continue.", records.size()));
  }
  const auto first = std::find_if(records.begin(), records.end(),
                                  [](const auto& record) { return record->is_settled.load(); });
  return static_cast<std::size_t>(first - records.begin());
}

void Core::cancel(Record& record) {
  if (origin_.is_inherited()) return;
  record.stop = true;
  for (State from : {State::queued, State::waiting})
    settle(record, from, error_or(spare_.cancelled, [&] {
             return Error(Errc::cancelled,
                          base::text("{} was cancelled before it started.", record.subject()));
           }));
}

void Core::release(const std::shared_ptr<Record>& record) noexcept {
  if (!record->borrows) return;  // it continues, and owns its operands
  if (origin_.is_inherited()) return;
  cancel(*record);
  base::Lock lock(record->mutex);
  record->gate.wait(lock, Instant::max(), [&] { return record->is_settled.load(); });
}

/// Counts and lists a job that this thread runs next.
void Core::begin_locked(Record& record) noexcept {
  --metrics_.queued;
  ++metrics_.running;
  record.active_next = active_;
  if (active_) active_->active_previous = &record;
  active_ = &record;
}

/// Takes a job off the list. Called by the thread that settles it.
void Core::unlist_locked(Record& record) noexcept {
  if (record.active_next) record.active_next->active_previous = record.active_previous;
  (record.active_previous ? record.active_previous->active_next : active_) = record.active_next;
  record.active_previous = record.active_next = nullptr;
}

Result<void> Core::close(Instant until) noexcept {
  if (const Error* inherited = origin_.error()) return *inherited;
  std::vector<base::Worker> workers;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    closing_ = true;
    work_.wake_all();
  }
  for (Queue& queue : queues_) {
    std::vector<Ready> waiting;
    {
      const base::Lock lock = base::lock_soon(mutex_);
      waiting.swap(queue.ready);
      ready_.fetch_sub(waiting.size(), std::memory_order_relaxed);
    }
    for (const Ready& one : waiting)
      settle(*one.record, State::queued, error_or(spare_.closed, [&] {
        return Error(Errc::closed,
                     base::text("{} had not started when the scheduler was closed.", one.record->subject()));
      }));
  }
  {
    base::Lock lock = base::lock_soon(mutex_);
    const std::uint32_t own = jobs_on_this_thread > 0 ? 1 : 0;
    if (job_stopped_.wait(lock, until, [&] { return has_abandoned_ || committed_locked() <= own; })) {
      if (!has_abandoned_) workers.swap(workers_);  // otherwise some still run jobs, and are not joined
      return {};
    }
    has_abandoned_ = true;
    self_ = shared_from_this();
    base::detail::keep(this);
    job_stopped_.wake_all();
  }
  std::string names;
  bool are_all_named = true;
  std::shared_ptr<device::Timeline> polled;
  while (const std::shared_ptr<Record> record = abandon_next(polled)) {
    // A worker waits for it instead of the waiter thread of the device: that polls the driver again and again, which it
    // must not do while the process ends.
    if (polled && polled->drop_callbacks()) on_return(record.get());
    const std::string name = abandon(*record);
    try {
      names += (names.empty() ? "" : ", ") + name;
    } catch (const std::bad_alloc&) {
      are_all_named = false;
    }
  }
  if (!are_all_named || names.empty()) return spare_.close_timed_out;
  return error_or(spare_.close_timed_out, [&] {
    return Error(
        Errc::timed_out,
        base::text("Jobs still ran when the deadline of closing passed, and are abandoned: {}.", names));
  });
}

/// Marks the next job that another thread runs as abandoned and returns it; null if there is none. Sets `polled` to the
/// timeline of its lane if the job was in flight.
std::shared_ptr<Record> Core::abandon_next(std::shared_ptr<device::Timeline>& polled) {
  polled.reset();
  const base::Lock lock = base::lock_soon(mutex_);
  for (Record* record = active_; record; record = record->active_next) {
    if (record->run_by == &jobs_on_this_thread) continue;  // its host function closes the scheduler
    if (record->advance(State::in_flight, State::abandoned)) {
      record->is_unattended = true;
      polled = record->attempt->lane().timeline();
      --in_flight_;
    } else if (record->advance(State::returned, State::abandoned)) {
      --in_flight_;
    } else if (!record->advance(State::running, State::abandoned)) {
      continue;  // it has just settled
    }
    unlist_locked(*record);
    --metrics_.running;
    ++metrics_.failed;
    if (record->type_metrics) ++record->type_metrics->failed;
    return record->shared_from_this();
  }
  return nullptr;
}

SchedulerMetrics Core::metrics_locked() const {
  SchedulerMetrics metrics = metrics_;
  for (std::size_t device = 0; device < completed_on_.size(); ++device)
    if (completed_on_[device] != 0)
      metrics.completed_by_backend[pool_->devices()[device].info().backend] += completed_on_[device];
  return metrics;
}

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
