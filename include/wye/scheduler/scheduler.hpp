#pragma once
/// The Scheduler: job in, ticket out; it decides where, and says why.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/ticket.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wye {
inline namespace v0 {

namespace device {
class ExecutableProvider;
}
namespace scheduler {
class Core;
}

/// One row of the preference table: jobs of `type` whose operands have at least `at_least` bytes try the
/// `backends` in this order. Of the rows of a type, the one with the largest `at_least` that still holds
/// counts. Devices of backends that a row does not name come last; a Vulkan device that is really the CPU
/// comes after everything.
struct Preference {
  WorkloadType type;
  Bytes at_least;
  std::vector<std::string> backends;
};

/// The table a scheduler starts with: small work stays on the CPU, large work goes to a GPU.
WYE_API std::vector<Preference> default_preferences();

struct SchedulerOptions {
  std::uint32_t concurrent_jobs = 4;                   ///< that run at the same time
  Duration job_time_limit = std::chrono::seconds(30);  ///< of running
  Fallback fallback = Fallback::allow;
  std::vector<Preference> preferences = {};  ///< rows that replace the default ones of their types
  LogSink log = {};
  const Clock* clock = nullptr;  ///< null: the steady clock
  bool measure_variants = true;  ///< see `fastest_of`; else the first that has a source is taken
  /// How long the destruction of the scheduler waits for running jobs; jobs that run then are abandoned, as by
  /// `close(deadline)`. Unset: no limit.
  std::optional<Duration> close_timeout = std::nullopt;
};

/// The jobs of one workload type that have settled.
struct TypeMetrics {
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;     ///< neither timed out nor cancelled
  std::uint64_t cancelled = 0;  ///< by their callers
  Duration run_time{};          ///< of all together: see `Outcome::run_time`
  std::uint64_t timed_out = 0;  ///< not started by `start_by`, or not done within their time limit
  Duration build_time{};        ///< of all together: see `Outcome::build_time`
};

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
      by_type;                  ///< by the name of the workload type: "shader-compilation"
  std::uint64_t timed_out = 0;  ///< not started by `start_by`, or not done within their time limit
};

/// Places jobs on the devices of a pool. Copies share one scheduler.
/// Threads: thread-safe.
class WYE_API Scheduler {
 public:
  /// `kernels`: where executables come from, such as a ShaderCache.
  /// Errors: invalid_argument (no `kernels`, an option out of range, a backend in a row that does not exist).
  static Result<Scheduler> open(ContextPool pool, std::shared_ptr<device::ExecutableProvider> kernels,
                                SchedulerOptions options = {});

  /// Queues a job. Never fails and never blocks on a device: what is wrong with the job is its ticket's
  /// result. If the system gives the scheduler no thread, the calling thread runs the job.
  [[nodiscard]] Ticket submit(Job job, const JobOptions& options = {});
  /// Runs a job on this thread, without handing it to another: `submit` and `wait` in one.
  Result<Outcome> run(Job job, const JobOptions& options = {});

  SchedulerMetrics metrics() const;
  /// Settles queued jobs as `closed`, waits for running ones, refuses new ones.
  void close();
  /// Does the same, and waits for running jobs no longer than until `deadline`. Jobs that run then are abandoned. Their tickets
  /// settle as `closed`, their arrays cannot be written any more, and arrays that they write have failed. Their threads cannot
  /// be ended: everything that such a job uses is kept until the process ends. Host memory that the job borrows, and a clock or
  /// log sink of the host's, must stay valid as long. A thread that runs the job in its own `wait` returns when the job ends.
  /// Errors: timed_out, naming each abandoned job, its tag and its device.
  [[nodiscard]] Result<void> close(Deadline deadline);

  const std::shared_ptr<scheduler::Core>& state() const noexcept { return core_; }

 private:
  explicit Scheduler(std::shared_ptr<scheduler::Core> core) : core_(std::move(core)) {}
  std::shared_ptr<scheduler::Core> core_;
};

}  // namespace v0
}  // namespace wye
