#pragma once
/// How a job runs and ends.
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "scheduler/parts.hpp"
#include "scheduler/record.hpp"

namespace wye::inline v0::scheduler {

class Queue;
class Workers;

/// Returns whether the job may succeed on another device. A failed kernel, an invalid argument and
/// a cancelled job are the same on every device.
bool may_succeed_elsewhere(Errc code);

/// Runs jobs on the calling thread, one device after the other, and settles them.
/// Threads: thread-safe, if one thread runs a job at a time. Several may settle it; one of them does.
class Runner {
 public:
  /// All outlive it.
  Runner(Parts& parts, Queue& queue, Workers& workers) noexcept
      : parts_(parts), queue_(queue), workers_(workers) {}

  /// Returns the line of the first device that may run a job, and of those that share its jobs; that
  /// of the threads if the job holds one while it runs: a run of a plan does if it uses the CPU at
  /// any time. Throws: std::bad_alloc.
  std::uint16_t line_of(Record& record) const;
  /// Returns whether a job may share its submission: it waits for a device other than the host, has
  /// no limits of its own, is one call with one possible variant, calls no function of the
  /// application, whose failure would be that of all jobs, and has no large copies, which are
  /// submitted alone. Throws: std::bad_alloc.
  bool may_share(const Record& record) const;

  /// Runs a record until it settles, is in flight or is requeued. Unless it has completed, it may be
  /// gone when this returns. `now` is as in `Workers::run_popped`.
  Progress run(Record& record, bool detaches, Instant& now) noexcept;

  /// Settles a record whose state is `from`. Allocates nothing: its memory was allocated when the
  /// job was submitted. Returns the time, or no time if a function of the application has run since
  /// it was read.
  Instant settle(Record& record, State from, std::optional<Error> error) noexcept;
  /// Settles a job that has not started although its `start_by` has passed.
  void expire(Record& record) noexcept;
  /// Stops a job: settles it unless it runs.
  void cancel(Record& record) noexcept;

 private:
  // run.cpp
  bool requeue(Record& record) noexcept;
  void take_over(Record& record);
  Result<Progress> place(Record& record, bool detaches);
  void warn_of_fallback(const Record& record, std::size_t device);
  void note_attempt(Record& record) noexcept;
  void emit_fallback(const Record& record, std::size_t device, const Error& why) noexcept;
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
  template <class F>
  void settle_unstarted(Record& record, const Error& spare, F make) noexcept;
  // batch.cpp
  Result<void> begin_batch(Record& leader, flight::Flight& attempt);
  template <class F>
  void each_member(Record& leader, F f) noexcept;
  void complete_batch(Record& leader, const Result<Progress>& result) noexcept;
  void dissolve_batch(Record& leader) noexcept;
  // plan_run.cpp
  Result<Progress> place_plan(Record& record, bool detaches);
  Result<void> place_again(Record& record);

  Parts& parts_;
  Queue& queue_;
  Workers& workers_;
};

}  // namespace wye::scheduler
