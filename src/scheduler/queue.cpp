// The queue and the threads that serve it.
#include <algorithm>
#include <new>
#include <utility>

#include "base/process.hpp"
#include "base/team.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
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
      preferences_(options_.preferences) {
  for (const Device& device : pool_->devices()) {
    const AdapterInfo& info = device.info();
    choices_.push_back({info.backend, info.type == AdapterType::cpu && info.backend != "cpu"});
  }
}

Core::~Core() = default;

std::shared_ptr<Record> Core::accept(Job job, const JobOptions& options) {
  auto record = base::make_own<Record>();
  record->core = shared_from_this();
  record->submitted = clock_->now();
  record->name = job.name();
  record->tag = options.tag;
  record->on = options.on;
  record->type = options.type.value_or(job.type());
  record->priority = options.priority;
  record->fallback = options.fallback.value_or(options_.fallback);
  record->deadline = options.deadline.at(record->submitted);
  record->time_limit = options.time_limit.value_or(options_.job_time_limit);
  record->in_haste = !options.deadline.is_never() || options.time_limit;
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

/// Lines a job up behind the users of its arrays that come before it.
/// Errors: invalid_argument (an empty handle, an array of another runtime).
Result<std::vector<std::shared_ptr<data::Completion>>> line_up(Record& record, const pool::Pool& pool) {
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
  std::vector<std::shared_ptr<data::Completion>> before;
  for (const auto& [array, access] : uses) {
    if (writes(access)) record.outputs.push_back(array);
    for (auto& one : array->follow(access, record.turn)) before.push_back(std::move(one));
  }
  return before;
}

}  // namespace

/// Lets a record in; true where it can run at once. Else it waits for users of its arrays, or has settled.
bool Core::enter(const std::shared_ptr<Record>& record) {
  std::vector<std::shared_ptr<data::Completion>> before;
  std::optional<Error> error = record->job->error();
  {
    // Several arrays are lined up for at one moment, or two jobs could each come first at one of them.
    const base::Lock lock = base::lock_soon(mutex_);
    record->sequence = ++sequence_;
    ++metrics_.submitted;
    if (closing_)
      error.emplace(Errc::closed, base::text("Job '{}' came after the scheduler was closed.", record->name));
    if (!error && record->turn) {
      if (auto ahead = line_up(*record, *pool_))
        before = std::move(*ahead);
      else
        error.emplace(std::move(ahead).error());
    }
    ++metrics_.queued;
  }
  if (error) return settle(*record, State::queued, std::move(error)), false;
  if (before.empty()) return true;

  record->state = State::waiting;
  record->ahead = before.size();
  for (const auto& one : before) {
    one->when_over([record] {
      if (record->ahead.fetch_sub(1) != 1) return;
      if (record->advance(State::waiting, State::queued))
        record->core->make_ready(record);
      else
        record->core->leave(
            *record, Error(Errc::cancelled,
                           base::text("Job '{}' ended before it could write this array.", record->name)));
    });
  }
  return false;
}

/// Ends a record's turn with its arrays: only now may its followers go on. What it should have written has failed.
void Core::leave(Record& record, const std::optional<Error>& error) {
  if (error)
    for (const auto& array : record.outputs) array->fail(*error);
  record.outputs.clear();
  record.turn->finish();
}

void Core::submit(const std::shared_ptr<Record>& record) {
  if (origin_.is_inherited()) return;  // every call on the ticket answers so
  if (enter(record)) make_ready(record);
}

Result<Outcome> Core::run_here(const std::shared_ptr<Record>& record) {
  if (const Error* inherited = origin_.error()) return *inherited;
  if (enter(record) && !run_if_room(*record)) make_ready(record);
  return wait(*record, Deadline::never());
}

void Core::make_ready(const std::shared_ptr<Record>& record) {
  base::Lock lock = base::lock_soon(mutex_);
  if (closing_) {
    lock.unlock();
    return settle(
        *record, State::queued,
        Error(Errc::closed, base::text("Job '{}' was not ready when the scheduler closed.", record->name)));
  }
  queue_.push_back({record->priority, record->sequence, record});
  std::push_heap(queue_.begin(), queue_.end(), later);
  ready_.store(queue_.size(), std::memory_order_relaxed);
  call_worker(std::move(lock));
}

/// Sees to it that somebody takes the next job, and unlocks. One worker is called at a time: who comes calls the next one, if
/// there is something left by then.
void Core::call_worker(base::Lock lock) {
  if (called_ || looking_ > 0 || queue_.empty() || running_ >= options_.concurrent_jobs) return;
  if (parked_ > 0) {
    called_ = true;
    lock.unlock();  // or who is woken would wait for it
    return work_.wake_one();
  }
  if (workers_.size() >= options_.concurrent_jobs) return;
  auto worker = base::Worker::start("wye-jobs", [this] { work(); });
  if (worker) return workers_.push_back(std::move(*worker));
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
  --metrics_.queued;
  ++metrics_.running;
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

void Core::work() {
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
    --metrics_.queued;
    ++metrics_.running;
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
    --metrics_.queued;
    ++metrics_.running;
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
  const Instant start_by = base::parked_until(*clock_, record.deadline);
  if (until > Clock::steady().now()) (void)base::seen_before_parking(is_settled);
  base::Lock lock(record.mutex);
  if (!record.gate.wait(lock, std::min(until, start_by), is_settled)) {
    lock.unlock();
    if (start_by <= until) {
      // Nobody started it in time. Where somebody just did, it goes on.
      for (State from : {State::queued, State::waiting})
        settle(
            record, from,
            Error(Errc::timed_out, base::text("Job '{}' did not start before its deadline.", record.name)));
      lock.lock();
      record.gate.wait(lock, until, is_settled);
    } else {
      lock.lock();
    }
    if (!record.is_settled)
      return Error(Errc::timed_out, base::text("Job '{}' has not finished yet; it goes on.", record.name));
  }
  lock.unlock();
  return record.result();
}

void Core::cancel(Record& record) {
  if (origin_.is_inherited()) return;
  record.stop = true;
  for (State from : {State::queued, State::waiting})
    settle(record, from,
           Error(Errc::cancelled, base::text("Job '{}' was cancelled before it started.", record.name)));
}

void Core::release(const std::shared_ptr<Record>& record) noexcept {
  if (!record->borrows) return;  // it goes on alone: what it uses it holds
  if (origin_.is_inherited()) return;
  cancel(*record);
  base::Lock lock(record->mutex);
  record->gate.wait(lock, Instant::max(), [&] { return record->is_settled.load(); });
}

void Core::close() {
  if (origin_.is_inherited()) return;
  std::vector<base::Worker> workers;
  std::vector<Ready> waiting;
  {
    base::Lock lock = base::lock_soon(mutex_);
    closing_ = true;
    work_.wake_all();
    waiting.swap(queue_);
  }
  for (const auto& [priority, sequence, record] : waiting)
    settle(*record, State::queued,
           Error(Errc::closed,
                 base::text("Job '{}' had not started when the scheduler was closed.", record->name)));
  {
    base::Lock lock = base::lock_soon(mutex_);
    const std::uint32_t own = jobs_on_this_thread > 0 ? 1 : 0;
    quiet_.wait(lock, Instant::max(), [&] { return running_ <= own; });
    workers.swap(workers_);
  }
}

SchedulerMetrics Core::metrics_locked() const { return metrics_; }

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
