#pragma once
/// The threads that run the jobs of a scheduler.
#include <wye/scheduler/scheduler.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/gate.hpp"
#include "base/worker.hpp"
#include "scheduler/crew.hpp"
#include "scheduler/queue.hpp"

namespace wye::inline v0::scheduler {

/// Has each job of a queue run once: on a thread that waits for its ticket, otherwise on a worker. At
/// most `concurrent_jobs` workers run host functions, the CPU's kernels and builds; one further
/// worker is left for the jobs of other devices, which it submits and completes. Workers are started
/// when first needed and park when there is nothing to do.
/// Threads: thread-safe. Its state is under the mutex of the queue.
class Workers {
 public:
  /// All outlive it. `runner` is used once there is a job.
  Workers(Parts& parts, Queue& queue, Runner& runner) noexcept
      : parts_(parts), queue_(queue), runner_(runner) {}
  Workers(const Workers&) = delete;

  /// Wakes or starts a worker if there is work, and unlocks. Each worker does the same before it runs
  /// a job. A worker that releases followers wakes none: it takes the next job itself. If the system
  /// refuses a thread, the calling thread runs all jobs that are ready.
  void wake(base::Lock lock) noexcept;
  /// Runs a queued job on the calling thread if there is room. Returns whether it did, without
  /// `lock` then.
  bool run_if_room(base::Lock& lock, Record& record) noexcept;
  /// Returns whether workers that return from jobs take all jobs that are ready.
  bool take_all_locked() noexcept { return queue_.ready().count() <= crew_.returning(); }
  /// Makes room for one more job, while a job waits for one of this queue. `by` is 1 or -1.
  void add_room(int by) noexcept;
  /// Has a job in flight that was told to stop go on, on this thread.
  void stop_flight(const std::shared_ptr<Record>& record) noexcept;
  /// Called on a thread of the device: the submission of a flight of a record has completed, or has
  /// failed.
  static void on_return(Record* record, std::uint32_t flight) noexcept;

  // Of the thread that runs a job. If a function returns true, other threads may have the job
  // already; otherwise it stays with this thread.

  /// Returns a job to a line, at its old place in the order.
  bool requeue(Record& record, std::uint16_t line) noexcept;
  /// Returns a job that lacks memory to its line, at its old place, and pauses the device: no other
  /// job takes the memory that becomes free there. If the budget of its tag is spent, the jobs of
  /// the tag are paused, and those of other tags go on. Paused jobs go on when a job of the device,
  /// or of the tag, ends, or after a time that doubles with each wait. A job waits as long as others
  /// of the device, or of its tag, run. Returns false if it waits no longer; it then goes on to its
  /// next device.
  bool wait_for_memory(Record& record) noexcept;
  /// Leaves a job, whose submission reaches `point`, to the worker that completes it then, or when
  /// its time limit passes.
  bool detach(Record& record, const device::TimelinePoint& point) noexcept;
  /// Runs a member of a batch alone. Only from now on it counts as committed to its place.
  void run_member(Record& record) noexcept;

  /// Has all threads notice that the queue refuses jobs.
  void close() noexcept;
  /// Waits until no other thread runs a job. Returns the workers, to be joined. Returns nothing once
  /// `until` (of the steady clock) has passed: the caller calls `Queue::abandon_next` for each job.
  std::optional<std::vector<base::Worker>> await_stopped(Instant until) noexcept;

 private:
  bool has_work_locked() noexcept { return queue_.ready().has_work(!queue_.is_staging_locked()); }
  bool call_locked() noexcept;
  void run_popped(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker, Instant& now) noexcept;
  void run_begun(base::Lock& lock, std::shared_ptr<Record> record, bool is_worker, Instant& now) noexcept;
  void end_run_locked(std::uint16_t place, Progress progress) noexcept;
  void stage(base::Lock& lock, std::shared_ptr<Record> record, Instant& now) noexcept;
  void work() noexcept;
  bool run_next(base::Lock& lock, Instant& now) noexcept;
  bool leave_to_worker_locked(std::shared_ptr<Record> record) noexcept;

  Parts& parts_;
  Queue& queue_;
  Runner& runner_;
  Crew crew_;
  bool has_abandoned_ = false;
  base::Gate stopped_;
};

}  // namespace wye::scheduler
