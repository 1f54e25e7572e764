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

/// Jobs this thread is in the middle of. A job that waits for another one, be it on a thread of the team
/// that works for it, runs it on top, without a slot of its own: else `concurrent_jobs` jobs that each wait for one more would wait for ever.
thread_local int jobs_on_this_thread = 0;

/// Of queue entries, which have their order with them: the records lie all over memory.
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
      done_on_(pool_->devices().size()) {
  workers_.reserve(options_.concurrent_jobs);
  refused_.core =
      std::shared_ptr<Core>(std::shared_ptr<void>(), this);  // this holds it, not the other way round
  refused_.name = "job";
  refused_.state = State::settled;
  refused_.is_settled = true;
  refused_.error = spare_.out_of_memory;
  for (const Device& device : pool_->devices())
    choices_.push_back({device.info().backend, device::is_emulated(device.info())});
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
  record->in_haste = !options.start_by.is_never() || options.time_limit;
  record->size = size_of(job);
  bool uses_arrays = false;
  for (std::size_t c = 0; c < job.size(); ++c) {
    for (std::size_t i = 0; i < job[c].arguments().size(); ++i) {
      record->borrows |= job[c].arguments()[i].kind == Operand::Kind::host;
      uses_arrays |= job[c].arguments()[i].kind == Operand::Kind::array;
    }
  }
  if (uses_arrays) record->turn = std::make_shared<data::Completion>();
  record->job = std::move(job);
  return record;
}

namespace {

/// Lines a job up behind the users of its arrays that come before it. If there is no memory for that, it may be lined up
/// for some of its arrays.
/// Errors: invalid_argument (an empty handle, an array of another runtime), out_of_memory.
Result<void> line_up(Record& record, const pool::Pool& pool, const SpareErrors& spare) try {
  std::vector<std::pair<std::shared_ptr<data::ArrayState>, Access>> uses;
  const Job& job = *record.job;
  for (std::size_t c = 0; c < job.size(); ++c) {
    for (std::size_t i = 0; i < job[c].arguments().size(); ++i) {
      const Operand& operand = job[c].arguments()[i];
      if (operand.kind != Operand::Kind::array) continue;
      const auto array = std::static_pointer_cast<data::ArrayState>(operand.object);
      if (!array || array->pool().get() != &pool)
        return Error(Errc::invalid_argument, base::text("Argument {} of '{}' is {}.", i + 1, job[c].name(),
                                                        array ? "an array of another runtime"
                                                              : "an array handle that holds no array"));
      if (writes(operand.access) && array->is_read_only())
        return data::ArrayState::why_read_only().with_context(
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
    array->follow(access, record.turn, record.before);
    if (writes(access)) record.outputs.push_back(array);
  }
  return {};
} catch (const std::bad_alloc&) {
  return spare.out_of_memory;
}

}  // namespace

/// Lets a record in; true where it can run at once. Else it waits for users of its arrays, or has settled.
bool Core::enter(const std::shared_ptr<Record>& record) noexcept {
  std::optional<Error> error = record->job->error();
  try {
    if (auto right = check_operands(*record->job); !right && !error) error = std::move(right).error();
  } catch (const std::bad_alloc&) {
    error = spare_.out_of_memory;
  }
  {
    // Several arrays are lined up for at one moment, or two jobs could each come first at one of them.
    const base::Lock lock = base::lock_soon(mutex_);
    record->sequence = ++sequence_;
    ++metrics_.submitted;
    ++metrics_.queued;
    try {
      auto row = metrics_.by_type.find(record->type.name);
      if (row == metrics_.by_type.end())
        row = metrics_.by_type.try_emplace(std::string(record->type.name)).first;
      record->counted = &row->second;
    } catch (const std::bad_alloc&) {
      error = spare_.out_of_memory;
    }
    if (closing_)
      error = error_or(spare_.closed, [&] {
        return Error(Errc::closed, base::text("{} came after the scheduler was closed.", record->subject()));
      });
    if (!error && record->turn)
      if (auto lined_up = line_up(*record, *pool_, spare_); !lined_up) error = std::move(lined_up).error();
  }
  if (record->before.empty()) {
    if (!error) return true;
    settle(*record, State::queued, std::move(error));
    return false;
  }
  record->kept = record;
  record->state = State::waiting;
  if (error) settle(*record, State::waiting, std::move(error));
  record->before.when_all_over(&Core::turn_came, record.get());
  return false;
}

/// All users of its arrays that came before a record are over. A chain of records that end without running is ended by
/// this loop, one after another: calls in calls would use up the stack.
void Core::turn_came(void* came) noexcept {
  thread_local Record* first = nullptr;
  thread_local Record* last = nullptr;
  auto* const here = static_cast<Record*>(came);
  if (first) {
    last = last->next_turn = here;
    return;
  }
  for (first = last = here; first;) {
    const std::shared_ptr<Record> record = std::move(first->kept);
    Core& core = *record->core;
    record->before.clear();
    if (record->advance(State::waiting, State::queued))
      core.make_ready(record);
    else
      core.leave(*record, error_or(core.spare_.cancelled, [&] {
        return Error(Errc::cancelled,
                     base::text("{} ended before it could write this array.", record->subject()));
      }));
    first = record->next_turn;
  }
}

/// Ends a record's turn with its arrays: only now may its followers go on. What it should have written has failed.
void Core::leave(Record& record, const std::optional<Error>& error) noexcept {
  if (error)
    for (const auto& array : record.outputs) array->fail(*error);
  record.outputs.clear();
  record.turn->finish();
}

void Core::submit(const std::shared_ptr<Record>& record) noexcept {
  if (origin_.is_inherited()) return;  // every call on the ticket answers so
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
      queue_.push_back({record->priority, record->sequence, record});
    } catch (const std::bad_alloc&) {
      error = spare_.out_of_memory;
    }
  }
  if (error) {
    lock.unlock();
    return settle(*record, State::queued, std::move(error));
  }
  std::push_heap(queue_.begin(), queue_.end(), later);
  ready_.store(queue_.size(), std::memory_order_relaxed);
  call_worker(std::move(lock));
}

/// Wakes or starts a worker for the next job, and unlocks. One worker is woken at a time: it wakes the next one if jobs are
/// left.
void Core::call_worker(base::Lock lock) noexcept {
  if (called_ || looking_ > 0 || queue_.empty() || running_ >= options_.concurrent_jobs) return;
  if (parked_ > 0) {
    called_ = true;
    lock.unlock();  // or who is woken would wait for it
    return work_.wake_one();
  }
  if (workers_.size() >= options_.concurrent_jobs) return;
  try {
    auto worker = base::Worker::start("wye-jobs", [this] { work(); });
    if (worker) return workers_.push_back(std::move(*worker));  // there is room for it
  } catch (const std::bad_alloc&) {                             // as if the system gave no thread
  }
  if (!workers_.empty() || running_ > 0) return;  // a thread that runs a job takes the next one
  // The system gives no thread: the calling thread works the queue off. Jobs that become ready meanwhile come to the same
  // queue, so a chain of jobs needs no deep stack.
  while (running_ < options_.concurrent_jobs && !closing_) {
    const auto record = pop_locked();
    if (!record) return;
    run_popped(lock, *record);
  }
}

/// Runs a job that was taken from the queue, on this thread and in a slot of its own. `lock` is held before and after.
void Core::run_popped(base::Lock& lock, Record& record) {
  if (!record.advance(State::queued, State::running)) return;
  ++running_;
  begin_locked(record);
  lock.unlock();
  ++jobs_on_this_thread;
  run(record);
  --jobs_on_this_thread;
  lock = base::lock_soon(mutex_);
  --running_;
  quiet_.wake_all();
}

std::shared_ptr<Record> Core::pop_locked() {
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), later);
    auto record = std::move(queue_.back().record);
    queue_.pop_back();
    ready_.store(queue_.size(), std::memory_order_relaxed);
    if (record->state == State::queued) return record;  // else somebody ran or cancelled it already
  }
  return nullptr;
}

void Core::work() noexcept {
  base::Lock lock = base::lock_soon(mutex_);
  const auto is_called = [&] {
    return closing_ || called_ || (!queue_.empty() && running_ < options_.concurrent_jobs);
  };
  for (;;) {
    if (!is_called()) {
      ++looking_;
      (void)base::seen_before_parking(lock, [&] { return ready_.load(std::memory_order_relaxed) > 0; });
      --looking_;
    }
    ++parked_;
    work_.wait(lock, Instant::max(), is_called);
    --parked_;
    called_ = false;
    if (closing_) return;
    auto record = pop_locked();
    if (!record || !record->advance(State::queued, State::running)) continue;
    ++running_;
    begin_locked(*record);
    call_worker(std::move(lock));  // there may be room for one more
    ++jobs_on_this_thread;
    run(*record);
    record.reset();
    --jobs_on_this_thread;
    lock = base::lock_soon(mutex_);
    --running_;
    quiet_.wake_all();
  }
}

/// Runs a queued job on the calling thread, if nobody else does yet and there is room for it.
bool Core::run_if_room(Record& record) {
  const bool nested = jobs_on_this_thread > 0 || base::Team::inside();
  {
    const base::Lock lock = base::lock_soon(mutex_);
    if (!nested && running_ >= options_.concurrent_jobs) return false;
    if (!record.advance(State::queued, State::running)) return false;
    running_ += nested ? 0 : 1;
    begin_locked(record);
  }
  ++jobs_on_this_thread;
  run(record);
  --jobs_on_this_thread;
  if (nested) return true;
  base::Lock lock = base::lock_soon(mutex_);
  --running_;
  quiet_.wake_all();
  call_worker(std::move(lock));
  return true;
}

Result<Outcome> Core::wait(Record& record, Deadline deadline) {
  if (const Error* inherited = origin_.error()) return *inherited;
  const Instant until = base::parked_until(*clock_, deadline.at(*clock_));
  // A thread that will wait as long as it takes may as well do it.
  if (deadline.is_never()) run_if_room(record);
  if (record.is_settled) return record.result();
  const auto is_settled = [&] { return record.is_settled.load(); };
  const Instant start_by = base::parked_until(*clock_, record.start_by);
  if (until > Clock::steady().now()) (void)base::seen_before_parking(is_settled);
  base::Lock lock(record.mutex);
  if (!record.gate.wait(lock, std::min(until, start_by), is_settled)) {
    lock.unlock();
    if (start_by <= until) {
      // Nobody started it in time. Where somebody just did, it goes on.
      for (State from : {State::queued, State::waiting})
        settle(record, from, error_or(spare_.timed_out, [&] {
                 return Error(Errc::timed_out, base::text("{} did not start in time.", record.subject()));
               }));
      lock.lock();
      record.gate.wait(lock, until, is_settled);
    } else {
      lock.lock();
    }
    if (!record.is_settled)
      return error_or(spare_.timed_out, [&] {
        return Error(Errc::timed_out, base::text("{} has not finished yet; it goes on.", record.subject()));
      });
  }
  lock.unlock();
  return record.result();
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
  if (!record->borrows) return;  // it goes on alone: what it uses it holds
  if (origin_.is_inherited()) return;
  cancel(*record);
  base::Lock lock(record->mutex);
  record->gate.wait(lock, Instant::max(), [&] { return record->is_settled.load(); });
}

/// Counts and lists a job that this thread is about to run.
void Core::begin_locked(Record& record) noexcept {
  --metrics_.queued;
  ++metrics_.running;
  record.run_by = &jobs_on_this_thread;
  record.active_after = active_;
  if (active_) active_->active_before = &record;
  active_ = &record;
}

/// Takes a job off the list, on the thread that settles it.
void Core::unlist_locked(Record& record) noexcept {
  if (record.active_after) record.active_after->active_before = record.active_before;
  (record.active_before ? record.active_before->active_after : active_) = record.active_after;
  record.active_before = record.active_after = nullptr;
}

Result<void> Core::close(Instant until) noexcept {
  if (const Error* inherited = origin_.error()) return *inherited;
  std::vector<base::Worker> workers;
  std::vector<Ready> waiting;
  {
    base::Lock lock = base::lock_soon(mutex_);
    closing_ = true;
    work_.wake_all();
    waiting.swap(queue_);
  }
  for (const Ready& one : waiting)
    settle(*one.record, State::queued, error_or(spare_.closed, [&] {
      return Error(Errc::closed,
                   base::text("{} had not started when the scheduler was closed.", one.record->subject()));
    }));
  {
    base::Lock lock = base::lock_soon(mutex_);
    const std::uint32_t own = jobs_on_this_thread > 0 ? 1 : 0;
    if (quiet_.wait(lock, until, [&] { return has_abandoned_ || running_ <= own; })) {
      if (!has_abandoned_) workers.swap(workers_);  // else threads may still run jobs: they are not joined
      return {};
    }
    has_abandoned_ = true;
    self_ = shared_from_this();
    base::detail::keep(this);
    quiet_.wake_all();
  }
  std::string names;
  bool are_all_named = true;
  while (const std::shared_ptr<Record> record = abandon_next()) {
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

/// Takes the next job that another thread runs, which from then on is abandoned; null if there is none.
std::shared_ptr<Record> Core::abandon_next() {
  const base::Lock lock = base::lock_soon(mutex_);
  for (Record* record = active_; record; record = record->active_after) {
    if (record->run_by == &jobs_on_this_thread) continue;              // its function closes the scheduler
    if (!record->advance(State::running, State::abandoned)) continue;  // it has just ended
    unlist_locked(*record);
    --metrics_.running;
    ++metrics_.failed;
    if (record->counted) ++record->counted->failed;
    return record->shared_from_this();
  }
  return nullptr;
}

SchedulerMetrics Core::metrics_locked() const {
  SchedulerMetrics metrics = metrics_;
  for (std::size_t device = 0; device < done_on_.size(); ++device)
    if (done_on_[device] != 0)
      metrics.done_by_backend[pool_->devices()[device].info().backend] += done_on_[device];
  return metrics;
}

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
