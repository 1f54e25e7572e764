#pragma once
/// The jobs of a scheduler: those that wait, run or are in flight.
#include <wye/scheduler/scheduler.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/gate.hpp"
#include "scheduler/active_jobs.hpp"
#include "scheduler/ledger.hpp"
#include "scheduler/parts.hpp"
#include "scheduler/ready.hpp"
#include "scheduler/record.hpp"

namespace wye::inline v0::scheduler {

class Runner;

/// Keeps each job from its submission until it settles, and counts the threads that hold a job.
/// Threads: thread-safe. Functions that end in `_locked`, `ready` and `active` require the lock that
///          `hold` returns. The mutex is a leaf: no driver call, no code of the application, no other
///          room's lock under it.
class Queue {
 public:
  /// `parts` and `runner` outlive it. `runner` is used once there is a job.
  Queue(Parts& parts, Runner& runner);
  Queue(const Queue&) = delete;

  base::Lock hold() const noexcept { return base::lock_soon(mutex_); }
  Ready& ready() noexcept { return ready_; }
  ActiveJobs& active() noexcept { return active_; }
  /// Returns the number of jobs that wait for a place or have returned from one. Some may have settled.
  std::size_t count_ready() const noexcept { return ready_.count(); }
  /// Adds the places of devices that a table has added.
  void add_places(const Table& table) noexcept;

  // A job that waits.

  /// Numbers and counts a job, which has the error `refused` or none. Waits for room below the limit
  /// of waiting jobs if `is_bounded`; releases `lock` meanwhile. Returns the error of a job that is
  /// refused.
  std::optional<Error> enter(base::Lock& lock, Record& record, bool is_bounded,
                             std::optional<Error> refused) noexcept;
  /// Returns whether as many jobs wait as may.
  bool is_full_locked() const noexcept { return queued_ >= parts_.options.max_queued; }
  /// Counts a job for which there is no memory.
  void note_without_memory() noexcept;
  /// Adds a job that is ready. Returns its error if it cannot run.
  std::optional<Error> add_locked(const std::shared_ptr<Record>& record) noexcept;
  /// Returns the place that would take a record that is ready now.
  Foreseen foresee_locked(const Record& record) noexcept;
  /// Takes a job that waits; null if there is none.
  std::shared_ptr<Record> take_any() noexcept;

  // A job that begins to run.

  /// Takes the next job to run; null if there is none.
  std::shared_ptr<Record> pop_locked() noexcept;
  /// Counts and lists a job that begins to run. Jobs of its tag count if it `counts_for_tag`.
  void begin_locked(Record& record, bool counts_for_tag = true) noexcept;
  /// Counts a job as committed to its place, and as a run of a thread until `end_run_locked`.
  /// `now`: the time, if the thread knows it.
  void commit_locked(Record& record, Instant now = {}) noexcept;
  /// Takes jobs that wait for the same device into the submission of a job that starts there. The
  /// jobs that wait are divided among its lane and the free ones: none is taken that could have a
  /// lane of its own.
  void take_batch_locked(Record& leader) noexcept;
  /// Notes that the calling thread stages a queued job. Throws: std::bad_alloc.
  void begin_stage_locked(const std::shared_ptr<Record>& record);
  /// Ends that. `copied`: the size of the copies that were submitted.
  void end_stage_locked(Bytes copied) noexcept;
  bool is_staging_locked() const noexcept { return staging_ != nullptr; }

  // A job that the calling thread runs, or has run.

  /// Counts it as waiting: it is in a line again.
  void return_locked(Record& record) noexcept;
  /// Leaves it to its device. Returns the number of its flight, which a callback holds until
  /// `end_callback_locked`; nothing if it stays with this thread: it was abandoned.
  std::optional<std::uint32_t> begin_flight_locked(Record& record) noexcept;
  /// Returns the record, which its pending callbacks own.
  std::shared_ptr<Record> end_callback_locked(Record& record) noexcept;
  /// Has the place of a job that it has refused take no job that it shares for a while.
  void pause_place(const Record& record) noexcept;
  void note_memory_wait_locked() noexcept { ledger_.note_memory_wait(); }
  /// Takes a job that settles, whose state was `from`.
  void leave(Record& record, State from, const Settled& job) noexcept;
  /// Counts a job, for which `commit_locked` was called at `place`, as a job that no thread runs any
  /// more.
  void end_run_locked(std::uint16_t place) noexcept {
    --runs_;
    if (ready_.places().is_on_threads(place)) ready_.places().uncommit(place);
  }
  /// Returns the number of jobs that have started and that a thread has not left.
  std::uint32_t runs_locked() const noexcept { return runs_; }
  /// Counts a thread that may hold a job beyond those of `runs_locked`. `threads` is 1 or -1.
  void add_user_locked(int threads) noexcept;
  void begin_use() noexcept;
  void end_use() noexcept;

  // Their end.

  /// Waits until no job waits or runs, and no thread or callback holds a settled job.
  /// Errors: timed_out.
  Result<void> await_quiet(const Clock& clock, Instant until);
  /// Refuses jobs from now on.
  void close_locked() noexcept;
  bool is_closing_locked() const noexcept { return closing_; }
  /// Marks the next job that another thread runs as abandoned and returns it; null if there is none.
  /// The calling thread counts as a user of the job then. Sets `polled` to the timeline of its lane
  /// if the job was in flight.
  std::shared_ptr<Record> abandon_next(std::shared_ptr<device::Timeline>& polled) noexcept;

  SchedulerMetrics metrics() const;

 private:
  std::optional<Error> find_room(base::Lock& lock, const Record& record) noexcept;
  std::optional<Error> find_start_locked(Record& record) noexcept;
  void find_room_times_locked(Instant now) noexcept;
  void leave_line_locked(Record& record) noexcept;
  void end_active_locked(Record& record) noexcept;
  bool is_quiet_locked() const noexcept;

  Parts& parts_;
  Runner& runner_;
  mutable std::mutex mutex_;
  Ready ready_;
  ActiveJobs active_;
  Ledger ledger_;
  std::uint64_t sequence_ = 0;
  Record* staging_ = nullptr;    // the job that a worker stages: one at a time
  std::uint32_t queued_ = 0;     // jobs that wait
  std::uint32_t runs_ = 0;       // jobs that have started, until their thread has left them
  std::uint32_t users_ = 0;      // further threads that may hold jobs
  std::uint32_t callbacks_ = 0;  // of timelines, that hold a job
  bool closing_ = false;
  base::Gate room_;  // for callers of `enter` that wait until fewer jobs wait
  std::uint32_t waiting_for_room_ = 0;
  base::Gate quiet_;
  std::uint32_t quiescing_ = 0;  // calls of `await_quiet`
};

}  // namespace wye::scheduler
