#pragma once
/// The Scheduler: places jobs on devices and explains each choice.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/histogram.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/ticket.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wye::inline v0 {

class ShaderCache;
namespace scheduler {
class Core;
}

/// One row of the preference table. Jobs of `type` whose operands have at least `at_least` bytes
/// try the `backends` in this order. If several rows of a type apply, the scheduler uses the row
/// with the largest `at_least`. Devices of other backends come after the named backends; a Vulkan
/// device that runs on the CPU comes last.
struct Preference {
  WorkloadType type;
  Bytes at_least;
  std::vector<std::string> backends;
};

/// Returns the default table: small work runs on the CPU, large work on a GPU.
WYE_API std::vector<Preference> default_preferences();

/// Selects the order of jobs of the same priority.
enum class JobOrder : std::uint8_t {
  first_submitted,
  earliest_deadline,  ///< by `JobOptions::start_by`, then first submitted
  fair_shares,        ///< each tag gets its `TagOptions::share` of the time that jobs run
};

/// Limits of the jobs with one tag (`JobOptions::tag`).
struct TagOptions {
  std::string tag;
  /// Weight of its part of the run time in `JobOrder::fair_shares`, among the tags whose jobs wait.
  /// Tags that are not listed have 1. 0.001 to 1000.
  double share = 1.0;
  /// Limit of its jobs that run at the same time, at least 1. A job that a job waits for without a
  /// deadline runs beyond it.
  std::uint32_t concurrent = std::numeric_limits<std::uint32_t>::max();
};

/// Selects the behaviour of `Scheduler::submit` if `SchedulerOptions::max_queued` jobs wait.
enum class WhenFull : std::uint8_t {
  wait,    ///< until one of them starts; the new job times out at its `start_by`
  refuse,  ///< the new job fails as over_budget
  drop_lowest,  ///< the job that would run last fails as over_budget. Looks at every waiting job of the lowest priority
};

/// Selects how the device of a job is chosen among those that can run it.
enum class PlacementMode : std::uint8_t {
  learned,  ///< by the run times of earlier jobs of its kernels; by the table while these are not known
  table,    ///< in the order of the table: an order that does not depend on times
};

/// Options of `Scheduler::open`. Only `RuntimeOptions::from_environment` reads the variables.
///
/// | option           | default      | environment          | unit, range                          |
/// |------------------|--------------|----------------------|--------------------------------------|
/// | concurrent_jobs  | 4            | WYE_JOBS             | jobs, 1 to 1024                      |
/// | committed_per_lane | 2          | -                    | jobs, 1 to 64                        |
/// | batch_limit      | 64           | -                    | jobs, 1 to 64                        |
/// | job_time_limit   | 30 s         | WYE_JOB_TIME_LIMIT   | seconds, or with ms, s               |
/// | order            | first_submitted | -                 | see JobOrder                         |
/// | aging            | 10 s         | -                    | more than 0; Duration::max(): never  |
/// | max_queued       | 65,536       | -                    | jobs, at least 1                     |
/// | when_full        | wait         | -                    | see WhenFull                         |
/// | refuse_unreachable | false      | -                    | see below                            |
/// | tags             | none         | -                    | see TagOptions                       |
/// | fallback         | allow        | WYE_FALLBACK         | allow, warn, forbid                  |
/// | placement        | learned      | WYE_PLACEMENT        | learned, table                       |
/// | preferences      | none         | -                    | rows of `default_preferences` to replace |
/// | measure_variants | true         | WYE_MEASURE_VARIANTS | 0, 1: see `fastest_of`               |
/// | recent           | 1,024        | -                    | jobs, 0 to 1,048,576                 |
/// | log              | none         | -                    | see RuntimeOptions                   |
/// | clock            | steady clock | -                    |                                      |
/// | close_timeout    | no limit     | -                    | see RuntimeOptions                   |
struct SchedulerOptions {
  /// Limit of the host functions, CPU kernels and builds that run at the same time. A job on a GPU
  /// holds no thread once it is submitted: `committed_per_lane` limits these. A host function that
  /// waits for a job makes room for one.
  std::uint32_t concurrent_jobs = 4;
  /// Jobs that are committed to a GPU, for each of its lanes (`PoolOptions::lanes_per_device`). One
  /// of them holds the lane; the next ones are staged: while they wait, their kernels are built,
  /// and the arrays that they read are copied to the device, if memory is free for them there.
  /// Staged jobs hold no lane and no thread. They can still be cancelled, run out of time, move to
  /// another device and be overtaken by a higher priority, as all jobs that wait. With 1 none is
  /// staged.
  std::uint32_t committed_per_lane = 2;
  /// Limit of the jobs of one submission to a device other than the host. A job that starts there
  /// takes along jobs for which no lane is free, up to 1 ms of their mean run times: they would
  /// wait anyway. These jobs are one kernel call each, with less than 1 MiB of host memory, no
  /// native function and no limits of their own, and the kernel has run on the device with operands
  /// of that size. They start and end together, also if their time limit passes. Equal calls of a
  /// kernel with `Kernel::Options::batchable` become one launch. If a submission fails, each of its
  /// jobs goes on alone. With 1 each job has a submission of its own.
  std::uint32_t batch_limit = 64;
  Duration job_time_limit = std::chrono::seconds(30);  ///< of the time from a job's start to its end
  JobOrder order = JobOrder::first_submitted;          ///< of jobs of the same priority
  /// A job is overtaken only by jobs of the next higher priority that are submitted at most this
  /// much later than it; by jobs two priorities higher, at most twice as much later. In
  /// `JobOrder::earliest_deadline` this holds for the first job of each priority.
  Duration aging = std::chrono::seconds(10);
  /// Limit of the jobs that have been submitted and have not started. Jobs of `Scheduler::run`, and
  /// jobs that a job submits, count, but are accepted at once.
  std::uint32_t max_queued = 65'536;
  WhenFull when_full = WhenFull::wait;
  /// A job whose `JobOptions::start_by` no device reaches fails as timed_out when it is ready to run, and
  /// does not wait until then. If only a device reaches it that would complete the job later than others,
  /// the job waits for that device. The estimate is low: the time until the first running job ends, and
  /// the mean run times of the jobs that wait for the same device and run before it, divided by the jobs
  /// that run there at a time. The mean is of jobs of the same kernel and, to a quarter of an octave, the
  /// same size on that device; the latest count most. Kernels that have not completed there count for
  /// nothing.
  bool refuse_unreachable = false;
  std::vector<TagOptions> tags = {};
  Fallback fallback = Fallback::allow;
  /// How jobs that devices of several kinds can run are placed. With `learned` a job waits for the
  /// devices on which jobs of its kernels and size, to a quarter of an octave, have taken the least time.
  /// A trial runs on a device that has not run the kernels. It may take, by expectation, as long as they
  /// have run in all if no job runs on the processor of that device, and otherwise 2 % of that; on a
  /// slower device it may take 2 % of the time that they have run since. The expectation follows from
  /// other kernels of the same workload type, and may be wrong. Kernels are built on another thread before
  /// they are tried, once they have run as long as that takes. At most one trial runs on the devices of
  /// one kind. A job with a `start_by` or a time limit of its own is no trial.
  /// If the cache has a directory or a store, the times are kept there, also those of variants
  /// (`fastest_of`): for each kind of device and build of its driver those of the last 10,000 kinds of
  /// jobs. They are loaded when the scheduler opens, and saved when it closes and at most once a minute.
  /// A function of the application is known there by the name and the parameters of its kernel.
  PlacementMode placement = PlacementMode::learned;
  std::vector<Preference> preferences = {};  ///< the rows of a type replace the default rows of this type
  bool measure_variants = true;  ///< false: uses the first variant that has a source for the device
  std::uint32_t recent = 1024;   ///< settled jobs that `Scheduler::recent` returns
  LogSink log = {};
  const Clock* clock = nullptr;  ///< null: the steady clock
  /// Limits how long the destructor of the scheduler waits for running jobs, which are then
  /// abandoned as by `close(deadline)`. Unset: no limit.
  std::optional<Duration> close_timeout = std::nullopt;
};

/// The times of completed jobs, as those of `Outcome`.
struct JobHistograms {
  Histogram queue;
  Histogram build;
  Histogram transfer;
  Histogram run;

  /// Adds the times of other jobs.
  void add(const JobHistograms& other) noexcept {
    queue.add(other.queue);
    build.add(other.build);
    transfer.add(other.transfer);
    run.add(other.run);
  }
};

/// Counts of the jobs of one workload type, and the times of those that have completed.
struct TypeMetrics : JobHistograms {
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;     ///< neither timed out nor cancelled
  std::uint64_t cancelled = 0;  ///< by their callers
  Duration run_time{};          ///< sum of `Outcome::run_time`
  std::uint64_t timed_out = 0;  ///< not started by `start_by`, or not completed within their time limit
  Duration build_time{};        ///< sum of `Outcome::build_time`
  double per_second = 0;        ///< completed jobs, over the last five whole seconds of the scheduler's clock
  std::map<std::string, JobHistograms, std::less<>> by_backend;  ///< the times on each backend
};

/// Counts since the scheduler was opened, all read at one moment.
struct SchedulerMetrics {
  std::uint64_t submitted = 0;
  std::uint32_t queued = 0;   ///< now
  std::uint32_t running = 0;  ///< now
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;     ///< neither timed out nor cancelled
  std::uint64_t cancelled = 0;  ///< by their callers
  std::uint64_t fallbacks = 0;  ///< jobs that did not run on the first device chosen
  std::map<std::string, std::uint64_t, std::less<>> completed_by_backend;
  std::map<std::string, TypeMetrics, std::less<>>
      by_type;  ///< by the name of the workload type: "shader-compilation"; types beyond 64 are "other types"
  std::uint64_t timed_out = 0;     ///< not started by `start_by`, or not completed within their time limit
  std::uint64_t prefetches = 0;    ///< jobs whose arrays were copied to their device before they had a lane
  Bytes bytes_prefetched;          ///< by these copies
  std::uint64_t batches = 0;       ///< submissions of several jobs (`SchedulerOptions::batch_limit`)
  std::uint64_t batched_jobs = 0;  ///< jobs in these submissions
  std::uint64_t memory_waits = 0;  ///< returns of jobs to their queues, because memory was not free
  std::uint64_t moves = 0;   ///< completed jobs that an idle device took from those that waited for others
  std::uint64_t trials = 0;  ///< completed jobs that showed how long their kernels take on a device
  Duration expected_time{};  ///< sum of the expected times of completed jobs, if they were known
  Duration taken_time{};     ///< sum of the times that these jobs took, builds not counted
};

/// The placement of one job that has settled, as data.
struct Placement {
  /// The decision about one device, in order of consideration.
  struct Decision {
    std::string device;  ///< "vulkan:0"
    Candidate::Verdict verdict = Candidate::Verdict::passed;
    RefusalCode code = RefusalCode::none;
  };
  std::uint64_t number = 0;  ///< of the job, in the order of submission, from 1
  std::string job;           ///< its name; the first 47 bytes
  std::string tag;           ///< the first 31 bytes
  WorkloadType type;
  Bytes size;                       ///< of its operands
  std::vector<Decision> decisions;  ///< the first eight; none if the job did not start
  std::optional<Errc> error;        ///< unset: it completed
  Duration queue_time{};            ///< these four as those of `Outcome`; zero if the job did not start
  Duration build_time{};
  Duration transfer_time{};
  Duration run_time{};
  Bytes bytes_transferred;
  std::uint32_t jobs_in_submission = 1;  ///< these two as those of `Outcome`
  std::uint32_t jobs_in_launch = 1;
  /// Returns the device that ran the job; empty if none did.
  WYE_API std::string_view device() const noexcept;
  /// Returns it as one JSON object on one line, with the names of the members. Times are in
  /// milliseconds.
  WYE_API std::string json() const;
};

/// The known time of jobs of the same kernels and about the same size on a device.
struct Cost {
  std::string job;  ///< the name of the first of them
  WorkloadType type;
  std::string device;  ///< "cuda:0", for all devices that are equal to it; empty: a thread of wye
  Bytes least;         ///< of their operands: less than a quarter of an octave above it
  Estimate estimate;
  Instant last{};  ///< when the last one ended, by `SchedulerOptions::clock`
};

/// Places jobs on the devices of a pool. Copies share one scheduler.
/// Threads: thread-safe.
class WYE_API Scheduler {
 public:
  /// Opens a scheduler that runs jobs on the devices of `pool` and takes their executables from
  /// `cache`. It shares both.
  /// Errors: invalid_argument (an option out of range, a row that names a backend that does not
  ///         exist, a `cache` that was moved from), unsupported (these headers are of another
  ///         version than the library).
  static Result<Scheduler> open(ContextPool pool, const ShaderCache& cache, SchedulerOptions options = {},
                                Headers headers = {header_version, sizeof(SchedulerOptions)});

  /// Queues a job. Never fails and never blocks on a device: the ticket returns the error of a job
  /// that cannot run. If `max_queued` jobs wait, it waits unless `when_full` says otherwise. If the
  /// system gives the scheduler no thread, the calling thread runs the job.
  [[nodiscard]] Ticket submit(Job job, const JobOptions& options = {});
  /// Queues jobs in their order, each as `submit` does, with the same options; moves from them. Takes
  /// the scheduler's lock and wakes a thread once for 64 jobs.
  /// Throws: std::bad_alloc, if there is no memory for the tickets; no job is queued then.
  [[nodiscard]] std::vector<Ticket> submit(std::span<Job> jobs, const JobOptions& options = {});
  /// Runs a job on the calling thread and returns its result.
  Result<Outcome> run(Job job, const JobOptions& options = {});

  /// Returns where a job would run if it were submitted now, and the decision about each device, with
  /// the times that are known: the first candidate has the verdict `chosen`. Neither runs nor builds it,
  /// and does not wait for the jobs of its arrays or of `JobOptions::after`. The wait has no part of jobs
  /// that run already.
  /// Errors: those of the job; unsupported or device_lost, if no device can run it, with the reason of
  ///         each.
  /// Cost:   about that of a submission; one lookup in the cache for each kernel and device.
  [[nodiscard]] Result<Explanation> estimate(Job job, const JobOptions& options = {}) const;
  SchedulerMetrics metrics() const;
  /// Returns the placements of the last jobs that settled, the oldest first: at most
  /// `SchedulerOptions::recent`.
  std::vector<Placement> recent() const;
  /// Returns the times that placement learned from, by job, size and device: of the kernels that this
  /// scheduler has run, earlier processes included.
  std::vector<Cost> costs() const;
  /// Forgets these times, in storage too. The choice among variants (`fastest_of`) stays.
  void forget();
  /// Waits until the scheduler is idle: no job waits or runs, every function of a ticket has
  /// returned, every lane of a job has been given back, and no thread of wye holds a handle of a
  /// job, a ticket or a kernel of a job. A job that timed out counts until its device has completed
  /// it, or is lost. Call it before code that jobs use is unloaded, after the last submission.
  /// Handles of the application, functions that an `Executor` has not called yet, and the
  /// executables of the cache stay.
  /// Threads: thread-safe. Jobs that other threads submit meanwhile are waited for, too.
  /// Errors: timed_out, with the number of jobs that are left; invalid_argument on a thread that
  ///         runs a job or a function of a ticket, and on any thread of wye: it would wait for
  ///         itself.
  /// Cost:   one lock if the scheduler is idle; otherwise the thread parks.
  [[nodiscard]] Result<void> quiesce(Deadline deadline = {});
  /// Completes queued jobs as `closed`, waits for running jobs, and refuses new ones.
  void close();
  /// Closes as `close()`, and waits for running jobs until `deadline`. Jobs that still run then are
  /// abandoned: their tickets complete as `closed`, and arrays that they write have failed and
  /// cannot be written any more. Threads cannot be stopped, so all objects of an abandoned job are
  /// kept until the process ends. Host memory that it borrows, and a clock or log sink of the
  /// application, must stay valid as long. A thread that runs the job in its own `wait` returns
  /// when the job ends.
  /// Errors: timed_out, naming each abandoned job, its tag and its device.
  [[nodiscard]] Result<void> close(Deadline deadline);

 private:
  friend struct detail::Internals;
  explicit Scheduler(std::shared_ptr<scheduler::Core> state) : state_(std::move(state)) {}
  std::shared_ptr<scheduler::Core> state_;
};

}  // namespace wye
