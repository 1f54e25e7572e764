#pragma once
/// The state behind a Scheduler: the queue, the threads that serve it, and how one job is placed
/// and run.
#include <wye/scheduler/scheduler.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/block_pool.hpp"
#include "base/gate.hpp"
#include "base/logger.hpp"
#include "base/worker.hpp"
#include "device/provider.hpp"
#include "flight/flight.hpp"
#include "pool/pool.hpp"
#include "scheduler/active_jobs.hpp"
#include "scheduler/crew.hpp"
#include "scheduler/explainer.hpp"
#include "scheduler/ledger.hpp"
#include "scheduler/placer.hpp"
#include "scheduler/plan_counts.hpp"
#include "scheduler/preparer.hpp"
#include "scheduler/ready.hpp"
#include "scheduler/record.hpp"
#include "scheduler/spare_errors.hpp"
#include "scheduler/time_book.hpp"

namespace wye::inline v0 {

struct PlanOptions;

namespace scheduler {

struct GraphState;
struct PlanState;

/// Returns whether the job may succeed on another device. A failed kernel, an invalid argument and
/// a cancelled job are the same on every device.
bool may_succeed_elsewhere(Errc code);

/// Runs jobs. A thread that waits for its ticket runs the job itself; otherwise a worker runs it.
/// At most `concurrent_jobs` workers run host functions, the CPU's kernels and builds; one further
/// worker is left for the jobs of other devices, which it submits and completes. Workers are
/// started when first needed and park when there is nothing to do.
/// Threads: thread-safe. The mutex is a leaf: no driver call, no code of the application, no other
///          room's lock under it.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<pool::Pool> pool, std::shared_ptr<device::ExecutableProvider> provider,
       SchedulerOptions options);
  ~Core();

  /// Returns the record of a job. If memory runs out, the record has settled as out_of_memory.
  std::shared_ptr<Record> accept(Job&& job, const JobOptions& options) noexcept;
  /// Implements `Graph::compile`.
  Result<std::shared_ptr<PlanState>> compile(const GraphState& graph, const PlanOptions& options);
  /// Returns the record of a run of a plan, as `accept` does.
  std::shared_ptr<Record> accept(const std::shared_ptr<PlanState>& plan, const JobOptions& options) noexcept;
  /// Queues an accepted record. Settles it if it cannot be queued.
  void submit(const std::shared_ptr<Record>& record) noexcept;
  /// Runs an accepted record on this thread if `concurrent_jobs` allows it, otherwise queues it;
  /// waits for its result.
  Result<Outcome> run_here(const std::shared_ptr<Record>& record);
  Result<Outcome> wait(Record& record, Deadline deadline);
  /// Implements `wye::wait_any` for one record or more, of any schedulers.
  static Result<std::size_t> wait_any(std::span<const std::shared_ptr<Record>> records, Deadline deadline);
  void cancel(Record& record);
  /// Called by the destructor of a ticket.
  void release(const std::shared_ptr<Record>& record) noexcept;

  /// Returns a completion for a record. Throws: std::bad_alloc.
  std::shared_ptr<data::Completion> make_completion() const {
    return std::allocate_shared<data::Completion>(base::BlockAllocator<data::Completion>(*completions_));
  }

  /// Returns the process that opened it. A child of `fork` takes no lock of it and runs nothing.
  const base::Origin& origin() const noexcept { return origin_; }
  /// Returns where threads wait for a record. Few threads wait at a time, so records share.
  Parking& parking_of(const Record& record) noexcept {
    return parking_[std::hash<const void*>()(&record) / 64 % parking_.size()];
  }
  const pool::Pool& pool() const noexcept { return *pool_; }
  const Clock& clock() const noexcept { return *clock_; }
  /// Returns the row of the preference table for `size` of `type`.
  const Row& preferred(WorkloadType type, Bytes size) noexcept {
    return placer_.table().preferences.row(type, size);
  }
  const Explainer& explainer() const noexcept { return explainer_; }
  std::vector<Placement> recent() const;

  /// Keeps all numbers of this scheduler unchanged while the lock is held.
  base::Lock freeze() const { return base::Lock(mutex_); }
  SchedulerMetrics metrics_locked() const;

  /// Refuses new jobs, settles queued ones and waits for running ones until `until` (of the steady
  /// clock). Jobs that run then are abandoned: they settle as `closed`, and this object stays until
  /// the process ends, because threads still use it.
  /// Errors:  timed_out, naming the abandoned jobs; closed in a child of `fork`.
  Result<void> close(Instant until) noexcept;
  /// Implements `Scheduler::quiesce`, for a deadline by the clock of the pool.
  Result<void> quiesce(Deadline deadline);
  /// Calls a function of a ticket whose job has settled on the calling thread, which `quiesce` waits
  /// for.
  void call_at_once(const std::function<void(const Result<Outcome>&)>& then, Record& record) noexcept;
  /// Returns the time until which the destructor of the last handle waits for running jobs.
  Instant closes_by() const noexcept {
    return options_.close_timeout ? Deadline(*options_.close_timeout).at(Clock::steady()) : Instant::max();
  }

 private:
  // accept.cpp
  std::shared_ptr<Record> make_record(Job&& job, const JobOptions& options);
  std::optional<Error> make_room(base::Lock& lock, const Record& record) noexcept;
  std::optional<Error> examine(Record& record) noexcept;
  base::Lock enter(const std::shared_ptr<Record>& record, bool is_bounded) noexcept;
  static void on_predecessors_complete(void* object) noexcept;
  void make_dependencies(Record& record);

  // queue.cpp
  enum class Progress : std::uint8_t {
    completed,
    in_flight,
    requeued,  // it waits for another device
  };
  /// The jobs that the calling thread runs. A job that waits for another job runs it on top of
  /// itself without counting against `concurrent_jobs`: otherwise that many jobs that each wait for
  /// one more would deadlock.
  static constinit thread_local int jobs_on_this_thread;
  /// Returns whether the calling thread runs a job, or a part of one as a thread of the CPU team.
  static bool runs_job() noexcept;
  void make_ready(base::Lock lock, const std::shared_ptr<Record>& record) noexcept;
  bool requeue(Record& record) noexcept;
  void return_to_queue_locked(Record& record) noexcept;
  std::optional<Error> unreachable_locked(const Record& record) noexcept;
  std::uint16_t line_of(Record& record) const;
  bool has_work_locked() noexcept { return ready_.has_work(staging_ == nullptr); }
  void wake_worker(base::Lock lock) noexcept;
  bool call_worker_locked() noexcept;
  void run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker, Instant& now) noexcept;
  void run_begun(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker, Instant& now) noexcept;
  void end_run_locked(std::uint16_t place, Progress progress) noexcept;
  std::shared_ptr<Record> pop_locked() noexcept;
  void take_batch_locked(Record& leader) noexcept;
  void stage(base::Lock& lock, std::shared_ptr<Record> record, Instant& now) noexcept;
  void work() noexcept;
  bool run_if_room(base::Lock& lock, Record& record);
  void begin_locked(Record& record, bool is_nested) noexcept;
  void leave_queue_locked(Record& record) noexcept;

  // in_flight.cpp
  bool detach(Record& record, const device::TimelinePoint& point, Instant until) noexcept;
  std::shared_ptr<Record> end_callback_locked(Record& record) noexcept;
  static void on_return(Record* record, std::uint32_t flight) noexcept;

  // memory.cpp
  bool wait_for_memory(Record& record) noexcept;
  bool leave_to_worker_locked(std::shared_ptr<Record> record) noexcept;
  bool may_wait_alone_locked(Record::Extras::Shortage& shortage, MemoryPause& pause, Instant now,
                             bool is_shared, bool is_of_tag) const noexcept;

  // quiesce.cpp
  bool is_quiet_locked() noexcept;
  void note_quiet_locked() noexcept {
    if (quiescing_ > 0 && is_quiet_locked()) quiet_.wake_all();
  }
  void end_use() noexcept;
  Error not_quiet_locked() const;

  // wait.cpp
  class YieldedSlot;
  template <class F>
  void settle_unstarted(Record& record, const Error& spare, F make) noexcept;
  /// Settles a job that has not started although its `start_by` has passed.
  void expire(Record& record) noexcept;

  // close.cpp
  std::shared_ptr<Record> abandon_next(std::shared_ptr<device::Timeline>& polled);
  std::string abandon(Record& record) noexcept;

  // run.cpp
  Progress run(Record& record, bool detaches, Instant& now) noexcept;
  Result<Progress> place(Record& record, bool detaches);
  void warn_of_fallback(const Record& record, std::size_t device);
  void note_end(const Record& record, const Job& job, std::size_t device,
                const Result<Progress>& attempted) noexcept;
  bool leave_place(Record& record, std::size_t next, bool detaches) noexcept;
  bool recover_devices(Record& record, bool waits);
  Decision* find_device(Record& record);
  Result<std::optional<Progress>> try_device(Record& record, Decision& decision, bool detaches);
  Result<Progress> proceed(Record& record, bool has_returned, bool detaches);
  Result<Progress> attempt(Record& record, std::size_t device, bool detaches);
  static Instant until_of(const Record& record) noexcept;
  Instant begin_times(Record& record) const noexcept;
  Result<void> begin_attempt(Record& record, std::size_t device, flight::Flight* leader = nullptr);
  static void note_shortage(Record& record, const flight::Flight& attempt) noexcept;
  static Result<void> record_commands(Record& record);

  // settle.cpp
  void leave_locked(Record& record, State from) noexcept;
  Instant settle(Record& record, State from, std::optional<Error> error) noexcept;

  // batch.cpp
  bool may_share(const Record& record) const;
  Result<void> begin_batch(Record& leader, flight::Flight& attempt);
  template <class F>
  void each_member(Record& leader, F f) noexcept;
  void run_alone(Record& member) noexcept;
  void complete_batch(Record& leader, const Result<Progress>& result) noexcept;
  void dissolve_batch(Record& leader) noexcept;

  // plan_run.cpp
  friend class Compiler;
  Result<Progress> place_plan(Record& record, bool detaches);
  Result<void> place_again(Record& record);

  const base::Origin origin_;
  using Blocks = std::unique_ptr<base::BlockPool, base::BlockPool::Leave>;
  const Blocks records_;  // memory of records that have ended; likewise:
  const Blocks completions_;
  const Blocks dependencies_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<device::ExecutableProvider> provider_;
  SchedulerOptions options_;
  const Clock* clock_;
  const flight::Flights flights_;
  base::Logger log_;
  const std::shared_ptr<PlanCounts> plan_counts_;

  mutable std::mutex mutex_;
  base::Gate job_stopped_;
  TimeBook times_;
  Ready ready_;
  base::Gate room_;  // for callers of `submit` that wait until fewer jobs wait
  std::uint32_t waiting_for_room_ = 0;
  ActiveJobs active_;
  Crew crew_;
  std::uint64_t sequence_ = 0;
  Record* staging_ = nullptr;    // the job that a worker stages: one at a time
  std::uint32_t users_ = 0;      // threads that may hold handles of jobs, but for those with a committed job
  std::uint32_t callbacks_ = 0;  // records that a callback of a timeline holds
  std::uint32_t quiescing_ = 0;  // calls of `quiesce` that wait
  base::Gate quiet_;
  bool closing_ = false;
  bool has_abandoned_ = false;
  std::shared_ptr<Core> self_;  // holds this until the process ends, if jobs were abandoned
  std::uint32_t queued_ = 0;    // jobs that wait
  Ledger ledger_;
  Placer placer_;
  Preparer preparer_;
  const Explainer explainer_;
  std::array<Parking, 32> parking_;
  const SpareErrors spare_;
  Record refused_;  // the record of jobs for which memory ran out
};

/// Opens a scheduler that takes its executables from `provider`.
Result<Scheduler> open(const ContextPool& pool, std::shared_ptr<device::ExecutableProvider> provider,
                       SchedulerOptions options = {});

}  // namespace scheduler
}  // namespace wye
