#pragma once
/// Tickets: wait for, cancel and explain a submitted job.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/detail/id.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/executable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0 {

namespace scheduler {
class Core;
struct Record;
}  // namespace scheduler

/// One kernel of those that `fastest_of` chooses from, on one device and for work of one size.
struct Variant {
  std::string kernel;
  bool selected = false;                              ///< the job ran it
  std::uint32_t runs = 0;                             ///< timed runs
  std::optional<Duration> least_time = std::nullopt;  ///< of the timed runs
  std::optional<Error> excluded = std::nullopt;       ///< why it is not used
};

/// A choice of a job among the variants of a kernel.
struct VariantChoice {
  std::vector<Variant> variants;
  bool is_measuring = false;  ///< variants have timed runs left: later jobs may choose otherwise
};

/// The times of a job, as those of `Outcome`. Those of a job that has not run are zero, but for the
/// times of its failed attempts.
struct JobTimes {
  Duration queue{};
  Duration build{};
  Duration transfer{};
  Duration run{};
};

/// Describes a job that has completed successfully. Copies share it.
/// Threads: thread-safe.
class WYE_API Outcome {
 public:
  explicit Outcome(std::shared_ptr<const scheduler::Record> record) : record_(std::move(record)) {}
  /// Returns the id of the job, as `Ticket::id`.
  Id id() const noexcept;
  /// Returns the device that ran the job.
  const AdapterInfo& device() const;
  std::string_view backend() const { return device().backend; }
  /// Returns the time that the job waited: from submission to start, for devices that failed
  /// before, and for a lane.
  Duration queue_time() const;
  /// Returns the time to compile and load its kernels for the device. Near zero once they are
  /// cached.
  Duration build_time() const;
  /// Returns the time to copy operands to the device before the first kernel, and back after the
  /// last one. Copies of less than 1 MiB count as `run_time`. Zero on a device that uses host
  /// memory in place, unless an array was on another device.
  Duration transfer_time() const;
  /// Returns the rest of the time from start to end: the time of its kernels.
  Duration run_time() const;
  /// Returns the bytes copied between host and device for the job.
  Bytes bytes_transferred() const;
  /// Returns the tier where its kernel was found; of several kernels, the tier of the slowest.
  CacheTier cache_tier() const;
  /// Returns the choice for each of its kernels that has variants, with the measurements so far.
  std::vector<VariantChoice> variants() const;
  /// Returns the code of each of its kernels on the device: the source, format and architecture
  /// that were chosen. If a kernel was replaced since (hot reload), the code of its replacement.
  /// Empty for the run of a plan.
  std::vector<KernelCode> code() const;
  /// Returns the number of jobs that were submitted to the device together, with this one
  /// (`SchedulerOptions::batch_limit`).
  std::uint32_t jobs_in_submission() const noexcept;
  /// Returns the number of them that were one launch (`Kernel::Options::batchable`), with this one.
  std::uint32_t jobs_in_launch() const noexcept;
  /// Returns one sentence: the reason for the device.
  std::string reason() const;

 private:
  std::shared_ptr<const scheduler::Record> record_;
};

/// Why a device did not run a job.
enum class RefusalCode : std::uint8_t {
  none,                ///< it ran the job
  unusable_adapter,    ///< it could not be opened
  not_requested,       ///< `JobOptions::on` names another device
  device_lost,         ///< see `Candidate::error`
  device_suspect,      ///< work of a job that ran out of time is in flight there
  memory_errors,       ///< its memory has had an error within the last minute that ECC could not correct
  kernel_blamed,       ///< a kernel of the job was in flight at three losses of the device
  kernel_unsupported,  ///< a kernel of the job has no source for it, or needs a feature that it lacks
  foreign_buffer,      ///< an argument of the job is a buffer of another device
  attempt_failed,      ///< see `Candidate::error`
  fallback_forbidden,  ///< a device before it failed, and the job forbids fallback
  lower_preference,    ///< another device comes before it in the preference table
  emulated,            ///< it is a GPU driver that runs on the CPU: it comes after all other devices
  other_silicon,       ///< the GPU steps of a graph run on another processor (`PlanOptions::one_silicon`)
  busy,                ///< another device that can run the job had less to do
  slower,              ///< jobs like it take longer there: see `Candidate::estimate`
  trial,               ///< the job was a trial of another device: see `SchedulerOptions::placement`
};

/// Returns "lower_preference".
WYE_API std::string_view name(RefusalCode code) noexcept;

/// How long jobs of the same kernels and size take on a device that runs no other job, from their start
/// to their end, builds not counted. Of the time that a job shared its processor with others, it has an
/// equal part.
struct Estimate {
  Duration time{};         ///< the mean; the latest jobs count most
  Duration spread{};       ///< the mean distance from it
  std::uint32_t runs = 0;  ///< of such jobs there; 0: `time` follows from jobs of other sizes
  Duration wait{};         ///< of `Scheduler::estimate`: until the job would start there
  Duration build{};        ///< of `Scheduler::estimate`: of kernels that are not built there yet
};

/// The decision about one device.
struct Candidate {
  enum class Verdict : std::uint8_t {
    ran,      ///< it completed the job
    refused,  ///< it cannot run the job
    failed,   ///< it was tried and failed
    passed,   ///< it could have run the job; another device came first
    chosen,   ///< it would run the job: see `Scheduler::estimate`
  };
  std::string device;  ///< "vulkan:0"
  std::string name;    ///< "llvmpipe (LLVM 15.0.6, 256 bits)"
  Verdict verdict = Verdict::passed;
  std::string reason;  ///< a sentence: "Kernel 'scale' has no source for 'cpu:0' (has Glsl; needs host)."
  RefusalCode code = RefusalCode::none;
  std::optional<Error> error = std::nullopt;  ///< the failure of the device or of the attempt, if it was one
  /// The times known now; for the device that ran the job, `time` is as it was when the job started.
  /// Unset: no such job has run there, or none had when the job started.
  std::optional<Estimate> estimate = std::nullopt;
  std::optional<Duration> took = std::nullopt;  ///< of the device that ran the job
};

/// Returns "refused".
WYE_API std::string_view name(Candidate::Verdict verdict) noexcept;

/// Explains the placement of a job, device by device in order of consideration.
struct Explanation {
  std::string job;
  std::vector<Candidate> candidates;
  std::string tag = {};                      ///< `JobOptions::tag`
  std::vector<VariantChoice> variants = {};  ///< `Outcome::variants`
  std::vector<KernelCode> code = {};         ///< `Outcome::code`
  /// Returns the job and its tag, if it has one, then one line per candidate, starting with the
  /// device that ran the job. No trailing newline.
  WYE_API std::string text() const;
  /// Returns all of it as one JSON object: {"job", "tag", "candidates": [{"device", "name",
  /// "verdict", "code", "reason", "error": {"code", "sentence"}, "estimate": {"time_ms",
  /// "spread_ms", "runs", "wait_ms", "build_ms"}, "took_ms"}], "variants": [...], "code":
  /// [{"kernel", "source", "format", "architecture"}]}. Times are in milliseconds. Absent values
  /// are left out.
  WYE_API std::string json() const;
};

/// Has a thread of the application call a function.
using Executor = std::function<void(std::function<void()>)>;

/// Waits for and cancels one job. The destructor of the ticket of a job that borrows host memory
/// cancels the job, and waits until it has settled. A job that uses arrays alone continues without
/// its ticket.
/// Threads: one thread at a time; the job itself runs on other threads.
class WYE_API Ticket {
 public:
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&& other) noexcept;
  Ticket(const Ticket&) = delete;  // a job has one owner of its borrowed memory
  ~Ticket();

  /// Returns the id of the job. Jobs that were refused because there was no memory for them share
  /// the id of their scheduler's refusal.
  Id id() const noexcept;
  /// Waits until the job has completed or `deadline` passes. The deadline is that of this call, not
  /// of the job (`JobOptions::start_by`). The calling thread runs a job that has not started yet.
  /// Errors: timed_out (this wait; the job continues); the failure of the job.
  Result<Outcome> wait(Deadline deadline = {});
  /// Returns whether the job has completed. Never blocks.
  bool ready() const noexcept;
  /// Calls `then` once with the result, on the thread that completes the job; at once if the job
  /// has completed. `then` must not block. Exceptions are dropped. Each call adds a function.
  /// Without memory for it, `then` is called at once with out_of_memory, and the job continues.
  void then(std::function<void(const Result<Outcome>&)> then);
  /// Passes `executor` a function that calls `then` with the result, once the job has completed.
  /// `executor` is called as the `then` above is, and returns without waiting; the function may be
  /// called on any thread, at any time.
  void then(std::function<void(const Result<Outcome>&)> then, const Executor& executor);
  /// Cancels the job, unless it has settled. The ticket then returns `cancelled`, even if the job
  /// fails or runs out of time. A job that is queued or in flight on a device settles before this
  /// returns, and this thread calls its functions (`then`). Its work in flight continues on memory of
  /// its own, its results are dropped, and the device is treated as after a time limit. A host
  /// function ends the job at its next check of its StopToken, or when it returns; a thread that
  /// prepares or submits the job ends it after that. A job in flight that shares its submission
  /// (`SchedulerOptions::batch_limit`) settles with the others.
  void cancel();
  /// Returns the devices that were considered, each with the reason for its verdict.
  Explanation explain() const;

  explicit Ticket(std::shared_ptr<scheduler::Record> record);

 private:
  friend class Dependency;
  friend WYE_API Result<void> wait_all(std::span<Ticket> tickets, Deadline deadline);
  friend WYE_API Result<std::size_t> wait_any(std::span<Ticket> tickets, Deadline deadline);
  std::shared_ptr<scheduler::Record> record_;
};

/// Names a job that other jobs follow: `JobOptions::after`. The ticket may end before its
/// followers.
/// Threads: thread-compatible.
class WYE_API Dependency {
 public:
  Dependency(const Ticket& ticket) : record_(ticket.record_) {}  // NOLINT: a ticket is a dependency

 private:
  friend class scheduler::Core;
  std::shared_ptr<scheduler::Record> record_;
};

/// Waits until every job has completed or `deadline` passes. The tickets may be of several
/// runtimes.
/// Errors: timed_out (this wait; the jobs continue); the failure of the first of `tickets` that
///         failed, once all have completed; invalid_argument (a moved-from ticket).
WYE_API Result<void> wait_all(std::span<Ticket> tickets, Deadline deadline = {});
/// Waits until at least one job has completed or `deadline` passes, and returns the index of the
/// first of `tickets` that has. The calling thread runs no job.
/// Errors: timed_out (this wait; the jobs continue); invalid_argument (no tickets, a moved-from
///         ticket).
WYE_API Result<std::size_t> wait_any(std::span<Ticket> tickets, Deadline deadline = {});

}  // namespace wye
