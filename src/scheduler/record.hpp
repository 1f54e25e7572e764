#pragma once
/// The state of one job: shared by its ticket, the queue and the thread that runs it.
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/plan.hpp>
#include <wye/scheduler/scheduler.hpp>
#include <wye/scheduler/ticket.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/block_pool.hpp"
#include "base/gate.hpp"
#include "data/array_state.hpp"
#include "data/completion.hpp"
#include "device/provider.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {

class Core;
class Trial;
struct Attempt;
struct PlanRun;
struct Row;
struct TagState;

/// Destroys an attempt and returns its memory.
struct ReturnAttempt {
  base::BlockPool* pool = nullptr;
  void operator()(Attempt* attempt) const noexcept;
};
using AttemptPointer = std::unique_ptr<Attempt, ReturnAttempt>;

inline double milliseconds(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

enum class State : std::uint8_t {
  waiting,    ///< for its predecessors: the users of its arrays that it follows
  queued,     ///< ready to run
  staging,    ///< ready to run, while a worker prepares its device (`Core::stage`)
  running,    ///< on a thread, which prepares, runs or completes it
  in_flight,  ///< submitted to a device; it holds no thread
  returned,   ///< its submission has completed, failed or run out of time; a worker runs it next
  settled,
  abandoned,  ///< settled while it runs: see `Core::close`
};

/// The decision about one device, as data. `Core::explain` and `Core::reason` make sentences of it.
struct Decision {
  std::size_t device = 0;
  Candidate::Verdict verdict = Candidate::Verdict::passed;
  RefusalCode code = RefusalCode::none;
  std::uint32_t argument = 0;                                 ///< foreign_buffer: its number, from 1
  std::shared_ptr<const device::Program> program = nullptr;   ///< kernel_unsupported, foreign_buffer
  std::shared_ptr<const device::DeviceBase> owner = nullptr;  ///< foreign_buffer: the device of the buffer
  /// device_lost, attempt_failed. If there is none, the attempt ended with the error of the job.
  std::optional<Error> error = std::nullopt;

  /// Returns whether the device may run the job and has not been tried.
  bool is_open() const noexcept { return verdict == Candidate::Verdict::passed && code == RefusalCode::none; }
  void refuse(RefusalCode why) noexcept {
    verdict = Candidate::Verdict::refused;
    code = why;
  }
};

/// One call of `wait_any`. Its lock is inside those of the records.
struct AnyWait {
  std::mutex mutex;
  base::Gate gate;
  bool any_settled = false;

  void notify() noexcept {
    const base::Lock lock(mutex);
    any_settled = true;
    gate.wake_all();
  }
};

/// The state changes by compare-and-swap. The thread that moves it to `running` runs the job; the thread that moves it to
/// `settled` settles it. A job that was in flight and returned runs again, on any worker.
/// Threads: that thread writes the members below the state; other threads read them once the job has settled. Of an
///          abandoned record, other threads read the name, the tag and the error only.
struct Record : std::enable_shared_from_this<Record> {
  Record();
  ~Record();

  std::shared_ptr<Core> core;
  std::optional<Job> job;  ///< destroyed when the job settles: it holds the caller's arrays and buffers
  std::string name;
  std::string tag;
  std::string on;
  WorkloadType type;
  Priority priority = Priority::normal;
  Fallback fallback = Fallback::allow;
  Instant start_by = Instant::max();
  Duration time_limit{};
  std::uint64_t sequence = 0;
  bool has_own_limits = false;  ///< the job's options have a `start_by` or a time limit
  bool borrows = false;         ///< an argument is host memory of the caller

  std::atomic<State> state{State::queued};
  std::atomic<bool> stop{false};

  bool uses_arrays = false;
  std::shared_ptr<data::Completion> completion;  ///< for its followers; null if it has none and uses no array
  /// Elements that it writes, which fail if it does.
  struct Output {
    std::shared_ptr<data::ArrayState> array;
    data::IntervalSet elements = {};
  };
  detail::InlineList<Output, 1> outputs;
  using After = detail::InlineList<std::shared_ptr<Record>, 1>;
  After after;  ///< `JobOptions::after`, until they have settled
  AfterFailure after_failure = AfterFailure::fail;
  bool failed_as_follower = false;  ///< `error` is that of a job in `after`
  data::Predecessors predecessors;
  std::shared_ptr<Record> self;     ///< set until its predecessors are complete, and while it is in flight
  Record* next_released = nullptr;  ///< the next record without predecessors, on the thread that queues them
  Record* active_previous =
      nullptr;  ///< neighbours in the core's list of running jobs, under the core's mutex
  Record* active_next = nullptr;
  const void* run_by = nullptr;         ///< the thread that runs it
  Instant flight_until{};               ///< in flight: when its time limit passes, of the steady clock
  bool is_unattended = false;           ///< abandoned in flight, and no worker waits for it yet
  std::size_t queue = 0;                ///< of the core; it counts as committed there while it runs
  std::uint64_t program = 0;            ///< the number of the program of its first call
  bool may_share = false;               ///< a submission with other jobs: `Core::take_batch_locked`
  bool leads_batch = false;             ///< it was submitted with `batch`
  Record* batch = nullptr;              ///< the other jobs of its submission, until they settle
  std::uint32_t batch_size = 1;         ///< the jobs of its submission
  std::uint32_t launch_size = 1;        ///< the jobs of its launch
  bool is_staged = false;               ///< one of the queue's staged jobs, under the core's mutex
  bool is_due = false;                  ///< it counts as running, and starts when its stage ends
  TypeMetrics* type_metrics = nullptr;  ///< the row of its type; null: it is not counted
  TagState* tag_state = nullptr;        ///< null: nothing depends on its tag
  bool counts_for_tag = false;          ///< as one of the running jobs of its tag
  Duration* mean_run_time = nullptr;    ///< of its kernel and size in its queue; null: it is not observed
  Duration expected{};                  ///< its run time, while the queue expects it
  Instant due{};                        ///< its place in the order within its priority
  /// Its list: of jobs that wait for the limit of their tag, of returned jobs, or of the members of a batch.
  Record* next_listed = nullptr;
  std::shared_ptr<Record> self_listed;  ///< while it is in one of these lists

  Instant submitted{};
  Instant started{};
  Instant ended{};  ///< of its last command, if it completed
  Instant settled_at{};
  Duration lane_time{};                                ///< failed attempts, and the wait for a lane
  Duration build_time{};                               ///< the builds of its kernels
  Duration transfer_time{};                            ///< the transfers of its operands
  std::size_t next_candidate = 0;                      ///< an index into `Row::devices`
  bool has_failed = false;                             ///< on a device; a further device is a fallback
  std::unique_ptr<PlanRun> plan_run;                   ///< null: it is a job; released as `job` is
  std::shared_ptr<const PlanDescription> plan;         ///< of the run of a plan that has started
  AttemptPointer attempt;                              ///< on the device that it is being tried on
  std::size_t device = 0;                              ///< index of the device that ran it
  std::atomic<std::size_t> tried_on{~std::size_t{0}};  ///< the device that it is being tried on
  CacheTier tier = CacheTier::none;
  Bytes bytes_prefetched;
  std::size_t prefetched_on = 0;  ///< the device with these copies
  Bytes bytes_transferred;
  Bytes size;                ///< of its operands, for the preference table
  const Row* row = nullptr;  ///< of the preference table
  detail::InlineList<Decision, 3> decisions;
  std::vector<std::pair<std::shared_ptr<const Trial>, std::size_t>> variants;  ///< the variants that it ran
  /// Programs with a source that comes before the one in use and that the device refuses.
  std::vector<std::shared_ptr<const device::Program>> passed_over;
  std::optional<Error> error;

  std::atomic<bool> is_settled{false};
  std::atomic<bool> is_watched{false};  ///< set by `watch`, and never cleared
  mutable std::mutex mutex;             ///< guards the members below
  mutable base::Gate gate;
  std::vector<std::function<void(const Result<Outcome>&)>> continuations;
  std::vector<AnyWait*> any_waits;  ///< calls of `wait_any` that wait for it among others

  /// Returns "Job 'scale'" or "Job 'scale' (tag 'frame 7')", for the beginning of a sentence.
  std::string subject() const;
  /// Returns the same for the middle of a sentence.
  std::string object() const;

  Duration queue_time() const noexcept { return started - submitted + lane_time; }
  Duration run_time() const noexcept { return settled_at - started - lane_time - build_time - transfer_time; }
  /// Has the thread that settles this take the mutex, because a member below or `completion` is about to change or a thread
  /// is about to wait. Returns false if this has settled, and then no thread takes it. Requires the mutex.
  bool watch() noexcept {
    is_watched =
        true;  // before `is_settled` is read: `Core::publish` writes and reads them in the other order
    return !is_settled;
  }
  /// Returns the next job of its batch, which begins with the job that leads it; null if it is the last one.
  Record* next_in_batch() const noexcept { return batch ? batch : next_listed; }
  bool advance(State from, State to) noexcept { return state.compare_exchange_strong(from, to); }
  /// Returns the completion of this record, which another one follows; null if this one has settled.
  /// Throws: std::bad_alloc.
  std::shared_ptr<data::Completion> followed();
  /// Returns the result of a settled job.
  Result<Outcome> result();
};

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
