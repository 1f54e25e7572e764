#include "backend/cpu/cpu_lane.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/cancellation.hpp"
#include "base/float_environment.hpp"
#include "base/gate.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "device/host_stamps.hpp"
#include "device/host_timeline.hpp"

namespace wye::inline v0::cpu {
namespace {

using namespace device;

/// The number of host functions on the stack of this thread.
thread_local int host_functions = 0;

class InsideHostFunction {
 public:
  InsideHostFunction() { ++host_functions; }
  InsideHostFunction(const InsideHostFunction&) = delete;
  ~InsideHostFunction() { --host_functions; }
};

std::byte* start_of(const Operand& operand) {
  return buffer_of(operand)->host() + operand.offset * operand.size;
}

void move_bytes(std::byte* target, const std::byte* source, Bytes bytes) {
  if (bytes.count != 0) std::memmove(target, source, bytes.count);
}

void fill(std::byte* target, Bytes bytes, std::uint32_t pattern) {
  for (std::uint64_t i = 0; i + sizeof(pattern) <= bytes.count; i += sizeof(pattern))
    std::memcpy(target + i, &pattern, sizeof(pattern));
}

/// Returns an operand in the form that host functions receive. It owns nothing; the recording does.
Operand in_place(const Operand& operand) {
  Operand o;
  o.kind = Operand::Kind::host;
  o.access = operand.access;
  o.element = operand.element;
  o.size = operand.size;
  o.count = operand.count;
  switch (operand.kind) {
    case Operand::Kind::buffer: o.data = start_of(operand); return o;
    case Operand::Kind::host: o.data = operand.data; return o;
    case Operand::Kind::address: return Operand::of_value(buffer_of(operand)->address());
    default:
      o.kind = operand.kind;
      o.data = operand.data;
      o.inline_value = operand.inline_value;
      return o;
  }
}

std::string what_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Exception& exception) {
    return exception.error().sentence();
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace

/// The queue of a lane. It may outlive its lane until the last call of the team or a timeline; then
/// it has no work. It uses the team only while it has work.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(const CpuDevice& device)
      : device_id_(device.info().id),
        team_(device.team()),
        timeline_(base::make_own<HostTimeline>(&device, HostTimeline::SignaledBy::lane)) {}

  const std::shared_ptr<HostTimeline>& timeline() const noexcept { return timeline_; }

  Result<std::uint64_t> submit(const Submission& submission);
  Result<void> wait(std::uint64_t value, Instant until);
  void abandon() noexcept;
  void end();

 private:
  enum class State {
    idle,     // nothing to do
    waiting,  // the first job waits for a timeline
    ready,    // the first job may start
    running,  // a job, taken from the queue, is running
  };
  /// One submission.
  struct Job {
    std::uint64_t value = 0;
    std::shared_ptr<const Recording> recording;
    std::size_t begin = 0;                 // earlier commands were executed by `submit`
    std::unique_ptr<std::byte[]> uploads;  // copies of the later uploads, concatenated
    std::vector<TimelinePoint> waits;
    StopToken stop;
    bool caller_works = false;     // the waiting thread runs it, with any deadline
    std::optional<Error> failure;  // the failure of a timeline that it waited for
  };
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  /// Jobs in order of submission. Keeps its memory: a deque would allocate for every fourth job.
  class Jobs {
   public:
    bool empty() const noexcept { return first_ == jobs_.size(); }
    Job& front() noexcept { return jobs_[first_]; }
    /// Throws: std::bad_alloc.
    void push_back(Job job) {
      if (jobs_.size() == jobs_.capacity() && first_ > jobs_.size() / 2) {
        jobs_.erase(jobs_.begin(), jobs_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
      }
      jobs_.push_back(std::move(job));
    }
    Job take_front() noexcept {
      Job job = std::move(jobs_[first_++]);
      if (empty()) jobs_.clear(), first_ = 0;
      return job;
    }

   private:
    std::vector<Job> jobs_;
    std::size_t first_ = 0;
  };

  void update_state(base::Lock& lock);
  void resume(const Error* failure);
  void post(base::Lock& lock);
  void run(base::Lock& lock, std::uint64_t up_to);
  void finish(Job job);
  static HostStamps& stamps_of(const Job& job, const Command& command) {
    return static_cast<HostStamps&>(job.recording->stamps_of(command));
  }
  std::optional<Error> execute(const Job& job);
  std::optional<Error> dispatch(const Command& command, std::span<const Operand> operands,
                                const StopToken& stop);

  const std::string device_id_;
  const Error no_memory_{Errc::out_of_memory,
                         "The host has no memory left to run a kernel."};  // created in advance
  const Error ended_{Errc::closed,
                     base::text("A lane of '{}' has ended.", device_id_)};  // created in advance
  base::Team& team_;
  const std::shared_ptr<HostTimeline> timeline_;
  std::uint64_t last_ = 0;  // of the submitting thread

  std::mutex mutex_;
  State state_ = State::idle;
  bool posted_ = false;  // the team has a request to run this, and has not begun
  Jobs jobs_;
  std::optional<Error> failure_;
  base::Gate drained_;

  std::mutex download_mutex_;
  std::uint64_t abandoned_ = 0;  // downloads up to this value are dropped

  std::vector<Operand> operands_;  // of the running dispatch
};

Result<std::uint64_t> Queue::submit(const Submission& submission) {
  Job job;
  job.value = last_ + 1;
  job.recording = submission.recording;
  job.stop = submission.stop;
  job.caller_works = submission.caller_waits;
  for (const TimelinePoint& point : submission.waits) {
    assert(point.timeline->owner() == timeline_->owner());
    if (point.timeline->reached() < point.value) job.waits.push_back(point);
  }
  bool at_once = false;
  {
    const base::Lock lock(mutex_);
    if (failure_) return *failure_;
    at_once = state_ == State::idle && jobs_.empty() && job.waits.empty();
  }

  // The caller may change the sources of uploads after this returns. Uploads are executed now if
  // the queue is idle, otherwise their sources are copied.
  const std::span<const Command> commands = job.recording->commands();
  const auto is_upload = [](const Command& command) { return command.kind == Command::Kind::upload; };
  if (at_once) {
    for (; job.begin < commands.size() && is_upload(commands[job.begin]); ++job.begin) {
      const Command& command = commands[job.begin];
      move_bytes(start_of(job.recording->operands(command)[0]), command.source, command.host_bytes);
    }
    if (job.begin == commands.size()) {
      last_ = job.value;
      if (auto signalled = timeline_->reach(last_); !signalled) return std::move(signalled).error();
      return last_;
    }
  }
  Bytes staged;
  for (const Command& command : commands.subspan(job.begin))
    if (is_upload(command)) staged += command.host_bytes;
  if (staged.count != 0) {
    job.uploads.reset(new (std::nothrow) std::byte[staged.count]);
    if (!job.uploads)
      return Error(Errc::out_of_memory,
                   base::text("The host has no memory for the uploads of a submission to '{}' ({}).",
                              device_id_, to_string(staged)));
    std::byte* next = job.uploads.get();
    for (const Command& command : commands.subspan(job.begin)) {
      if (!is_upload(command)) continue;
      move_bytes(next, command.source, command.host_bytes);
      next += command.host_bytes.count;
    }
  }

  base::Lock lock(mutex_);
  jobs_.push_back(std::move(job));
  last_ = last_ + 1;
  if (state_ == State::idle) {
    update_state(lock);
    if (state_ == State::ready && !submission.caller_waits) post(lock);
  }
  return last_;
}

/// Determines the state of the first job. Requires that no job runs and that `lock` is held. May
/// release the lock temporarily.
void Queue::update_state(base::Lock& lock) {
  state_ = State::idle;
  if (jobs_.empty()) return drained_.wake_all();
  Job& job = jobs_.front();
  while (!job.waits.empty() && job.waits.back().timeline->reached() >= job.waits.back().value)
    job.waits.pop_back();
  if (job.waits.empty()) {
    state_ = State::ready;
    return;
  }
  state_ = State::waiting;
  const TimelinePoint point = job.waits.back();
  lock.unlock();
  // All timelines of this device are HostTimelines, which need no thread for callbacks.
  bool is_watched = false;
  try {
    is_watched = bool(point.timeline->when(
        point.value, [self = shared_from_this()](const Error* failure) { self->resume(failure); }));
  } catch (...) {  // no memory
  }
  lock.lock();
  if (is_watched) return;
  jobs_.front().failure = no_memory_;
  jobs_.front().waits.clear();
  state_ = State::ready;
}

/// Continues the first job after the timeline that it waits for has reached its value or failed.
void Queue::resume(const Error* failure) {
  base::Lock lock(mutex_);
  if (failure) {
    Job& job = jobs_.front();
    job.failure = *failure;
    job.waits.clear();
  }
  update_state(lock);
  if (state_ == State::ready) post(lock);
}

/// Posts the ready jobs to the team. The lock is held, because otherwise the job and the team could
/// end before the team has the request. If the team has no thread, or there is no memory, the
/// calling thread runs the jobs.
void Queue::post(base::Lock& lock) {
  if (std::exchange(posted_, true)) return;
  bool posted = false;
  try {
    posted = team_.post([self = shared_from_this()] {
      base::Lock held(self->mutex_);
      self->posted_ = false;
      self->run(held, all);
    });
  } catch (...) {  // no memory
  }
  if (posted) return;
  posted_ = false;
  const auto self = shared_from_this();
  run(lock, all);
}

/// Runs jobs that are ready, up to the value `up_to`. `lock` is held.
void Queue::run(base::Lock& lock, std::uint64_t up_to) {
  while (state_ == State::ready && jobs_.front().value <= up_to) {
    state_ = State::running;
    Job job = jobs_.take_front();
    if (failure_) job.failure = failure_;
    lock.unlock();
    finish(std::move(job));
    lock.lock();
    update_state(lock);
  }
}

void Queue::finish(Job job) {
  const base::CancellationHeld held;
  if (!job.failure) {
    try {
      job.failure = execute(job);
    } catch (const std::bad_alloc&) {
      job.failure = no_memory_;
    }
  }
  job.recording.reset();  // before the value is reached, because then a thread may reuse the recording
  if (!job.failure) {
    (void)timeline_->reach(job.value);  // cannot fail: values increase in order
    return;
  }
  {
    const base::Lock lock(mutex_);
    if (!failure_) failure_ = job.failure;
  }
  timeline_->fail(*std::move(job.failure));
}

std::optional<Error> Queue::execute(const Job& job) {
  const std::byte* upload = job.uploads.get();
  for (const Command& command : job.recording->commands().subspan(job.begin)) {
    const std::span<const Operand> operands = job.recording->operands(command);
    switch (command.kind) {
      case Command::Kind::upload:
        move_bytes(start_of(operands[0]), upload, command.host_bytes);
        upload += command.host_bytes.count;
        break;
      case Command::Kind::download: {
        const std::lock_guard lock(download_mutex_);
        if (job.value > abandoned_) move_bytes(command.target, start_of(operands[0]), command.host_bytes);
        break;
      }
      case Command::Kind::copy:
        move_bytes(start_of(operands[1]), start_of(operands[0]), operands[0].bytes());
        break;
      case Command::Kind::fill: fill(start_of(operands[0]), operands[0].bytes(), command.pattern); break;
      case Command::Kind::dispatch:
        if (auto failure = dispatch(command, operands, job.stop)) return failure;
        break;
      case Command::Kind::release:
      case Command::Kind::acquire: break;  // this memory has no owner to change
      case Command::Kind::stamp_begin: stamps_of(job, command).take_begin(); break;
      case Command::Kind::stamp_end: stamps_of(job, command).take_end(); break;
    }
  }
  return std::nullopt;
}

std::optional<Error> Queue::dispatch(const Command& command, std::span<const Operand> operands,
                                     const StopToken& stop) {
  const Artefact& artefact = command.executable->artefact();
  operands_.clear();
  for (const Operand& operand : operands) operands_.push_back(in_place(operand));

  std::atomic<bool> failed{false};
  std::exception_ptr thrown;
  auto chunk = [&](std::uint64_t first, std::uint64_t last) {
    if (failed.load(std::memory_order_relaxed)) return;
    const InsideHostFunction inside;
    const base::DefaultFloatEnvironment environment;
    try {
      artefact.host->run(Range{first, last, command.items}, operands_, stop);
    } catch (...) {
      if (!failed.exchange(true)) thrown = std::current_exception();
    }
  };
  const std::uint64_t count = command.items.count();
  const auto& executable =
      static_cast<const CpuExecutable&>(*command.executable);  // this device creates no other class
  if (count != 0) team_.each(count, grain_for(artefact, command.items), chunk, executable.pace());
  if (!thrown) return std::nullopt;
  return Error(Errc::kernel_failed,
               base::text("Kernel '{}' failed on '{}': {}", artefact.kernel, device_id_, what_of(thrown)));
}

Result<void> Queue::wait(std::uint64_t value, Instant until) {
  if (timeline_->reached() >= value) return {};
  {
    base::Lock lock(mutex_);
    const bool any = until == Instant::max() || host_functions > 0;
    while (state_ == State::ready && jobs_.front().value <= value && (any || jobs_.front().caller_works))
      run(lock, jobs_.front().value);
    if (state_ == State::ready) post(lock);
  }
  return timeline_->wait(value, until);
}

void Queue::abandon() noexcept {
  const std::lock_guard lock(download_mutex_);
  abandoned_ = last_;
}

void Queue::end() {
  abandon();
  {
    base::Lock lock(mutex_);
    run(lock, all);
    drained_.wait(lock, Instant::max(), [this] { return state_ == State::idle && jobs_.empty(); });
  }
  timeline_->fail(ended_);
}

CpuLane::CpuLane(std::shared_ptr<CpuDevice> device)
    : LaneBase(device), queue_(base::make_own<Queue>(*device)), timeline_(queue_->timeline()) {}

CpuLane::~CpuLane() { queue_->end(); }

Result<std::uint64_t> CpuLane::submit(const Submission& submission) { return queue_->submit(submission); }
Result<void> CpuLane::wait(std::uint64_t value, Instant until) { return queue_->wait(value, until); }
void CpuLane::abandon() noexcept { queue_->abandon(); }

}  // namespace wye::cpu
