#pragma once
/// The jobs of a scheduler that wait, run or are in flight, and the threads that serve them.
#include <wye/scheduler/scheduler.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/gate.hpp"
#include "base/worker.hpp"
#include "scheduler/active_jobs.hpp"
#include "scheduler/crew.hpp"
#include "scheduler/ledger.hpp"
#include "scheduler/parts.hpp"
#include "scheduler/ready.hpp"
#include "scheduler/record.hpp"

namespace wye::inline v0::scheduler {

class Runner;

/// Keeps the jobs of a scheduler and has each run once: on a thread that waits for its ticket,
/// otherwise on a worker. At most `concurrent_jobs` workers run host functions, the CPU's kernels
/// and builds; one further worker is left for the jobs of other devices, which it submits and
/// completes. Workers are started when first needed and park when there is nothing to do.
/// Threads: thread-safe. The mutex is a leaf: no driver call, no code of the application, no other
///          room's lock under it.
class Queue {
 public:
  /// `parts` and `runner` outlive it. `runner` is used once there is a job.
  Queue(Parts& parts, Runner& runner);
  Queue(const Queue&) = delete;

  base::Lock hold() const noexcept { return base::lock_soon(mutex_); }
  /// Adds the places of devices that a table has added.
  void add_places(const Table& table) noexcept;

  // A job that is submitted.

  /// Numbers and counts a job, which has the error `refused` or none. Waits for room below the limit
  /// of waiting jobs if `is_bounded`; releases `lock` meanwhile. Returns the error of a job that is
  /// refused.
  std::optional<Error> enter(base::Lock& lock, Record& record, bool is_bounded,
                             std::optional<Error> refused) noexcept;
  /// Counts a job for which there is no memory.
  void note_without_memory() noexcept;
  /// Adds a job that is ready, under `lock`, and releases the lock. Settles it if it cannot run.
  void push(base::Lock lock, const std::shared_ptr<Record>& record) noexcept;
  /// Runs a queued job on the calling thread if there is room. Returns whether it did, without
  /// `lock` then.
  bool run_if_room(base::Lock& lock, Record& record) noexcept;

  // A job that the calling thread runs. If a function returns true, other threads may have the job
  // already.

  /// Returns it to a line, at its old place in the order. Returns false if it stays with this thread.
  bool requeue(Record& record, std::uint16_t line) noexcept;
  /// Returns a job that lacks memory to its line, at its old place, and pauses the device: no other
  /// job takes the memory that becomes free there. If the budget of its tag is spent, the jobs of
  /// the tag are paused, and those of other tags go on. Paused jobs go on when a job of the device,
  /// or of the tag, ends, or after a time that doubles with each wait. A job waits as long as others
  /// of the device, or of its tag, run. Returns false if it waits no longer; it then goes on to its
  /// next device.
  bool wait_for_memory(Record& record) noexcept;
  /// Leaves a job, whose submission reaches `point`, to the worker that completes it then, or at
  /// `until` (of the steady clock). Returns false if it stays with this thread.
  bool detach(Record& record, const device::TimelinePoint& point, Instant until) noexcept;
  /// Has the place of a job that it has refused take no job that it shares for a while.
  void pause_place(const Record& record) noexcept;
  /// Runs a member of a batch alone. Only from now on it counts as committed to its place.
  void run_member(Record& record) noexcept;
  /// Takes a job that settles, whose state was `from`.
  void leave(Record& record, State from, const Settled& job) noexcept;
  /// Has another worker take the work that this thread would take next: it has other things to do
  /// after the job that has settled.
  void call_other_worker() noexcept;

  // A job that another thread may run.

  /// Has a job in flight that was told to stop go on, on this thread.
  void stop_flight(const std::shared_ptr<Record>& record) noexcept;
  /// Called on a thread of the device: the submission of a flight of a record has completed, or has
  /// failed.
  static void on_return(Record* record, std::uint32_t flight) noexcept;
  /// Makes room for one more job, while a job waits for one of this queue. `by` is 1 or -1.
  void make_room(int by) noexcept;
  /// Counts the calling thread as a holder of a job, until `end_use`.
  void begin_use() noexcept;
  void end_use() noexcept;

  // Its end.

  /// Waits until no job waits or runs, and no thread or callback holds a settled job.
  /// Errors: timed_out.
  Result<void> await_quiet(const Clock& clock, Instant until);
  bool is_quiet() noexcept;
  /// Refuses jobs from now on.
  void begin_close() noexcept;
  bool is_closing() const noexcept;
  /// Takes a job that waits; null if there is none.
  std::shared_ptr<Record> take_any() noexcept;
  /// Waits until no other thread runs a job. Returns the workers, to be joined. Returns nothing once
  /// `until` (of the steady clock) has passed: the caller calls `abandon_next` for each job.
  std::optional<std::vector<base::Worker>> await_stopped(Instant until) noexcept;
  /// Marks the next job that another thread runs as abandoned and returns it; null if there is none.
  /// The calling thread counts as a user of the job then. Sets `polled` to the timeline of its lane
  /// if the job was in flight.
  std::shared_ptr<Record> abandon_next(std::shared_ptr<device::Timeline>& polled) noexcept;

  /// Requires the mutex, as `hold` returns it.
  SchedulerMetrics metrics_locked() const;
  std::vector<Placement> recent() const;

 private:
  // queue.cpp
  std::optional<Error> find_room(base::Lock& lock, const Record& record) noexcept;
  void return_locked(Record& record) noexcept;
  void begin_locked(Record& record, bool is_nested) noexcept;
  void leave_line_locked(Record& record) noexcept;
  void end_active_locked(Record& record) noexcept;
  bool is_quiet_locked() noexcept;
  void note_quiet_locked() noexcept {
    if (quiescing_ > 0 && is_quiet_locked()) quiet_.wake_all();
  }
  // memory.cpp
  bool leave_to_worker_locked(std::shared_ptr<Record> record) noexcept;
  // in_flight.cpp
  std::shared_ptr<Record> end_callback_locked(Record& record) noexcept;
  // workers.cpp
  bool has_work_locked() noexcept { return ready_.has_work(staging_ == nullptr); }
  void wake_worker(base::Lock lock) noexcept;
  bool call_worker_locked() noexcept;
  void run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker, Instant& now) noexcept;
  void run_begun(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker, Instant& now) noexcept;
  void commit_locked(Record& record) noexcept;
  void end_run_locked(Progress progress) noexcept;
  std::shared_ptr<Record> pop_locked() noexcept;
  void take_batch_locked(Record& leader) noexcept;
  void stage(base::Lock& lock, std::shared_ptr<Record> record, Instant& now) noexcept;
  void work() noexcept;

  Parts& parts_;
  Runner& runner_;

  mutable std::mutex mutex_;
  Ready ready_;
  ActiveJobs active_;
  Crew crew_;
  Ledger ledger_;
  std::uint64_t sequence_ = 0;
  Record* staging_ = nullptr;    // the job that a worker stages: one at a time
  std::uint32_t queued_ = 0;     // jobs that wait
  std::uint32_t runs_ = 0;       // jobs that have started, until their thread has left them
  std::uint32_t users_ = 0;      // threads that may hold handles of jobs, beyond those of `runs_`
  std::uint32_t callbacks_ = 0;  // records that a callback of a timeline holds
  bool closing_ = false;
  bool has_abandoned_ = false;
  base::Gate stopped_;
  base::Gate room_;  // for callers of `submit` that wait until fewer jobs wait
  std::uint32_t waiting_for_room_ = 0;
  base::Gate quiet_;
  std::uint32_t quiescing_ = 0;  // calls of `await_quiet`
};

}  // namespace wye::scheduler
