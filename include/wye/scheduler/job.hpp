#pragma once
/// Jobs: the work that a Scheduler places and runs.
#include <wye/base/clock.hpp>
#include <wye/kernel/kernel.hpp>
#include <wye/scheduler/ticket.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0 {

/// Names a kind of work and selects a row of the preference table. Applications may add types:
/// `inline constexpr wye::WorkloadType physics{"physics"};`.
struct WorkloadType {
  std::string_view name;  ///< must be valid until the process ends
  friend constexpr bool operator==(WorkloadType, WorkloadType) = default;
};

namespace workload_types {
WYE_LOCAL inline constexpr WorkloadType vector{"vector"};
WYE_LOCAL inline constexpr WorkloadType matrix{"matrix"};
WYE_LOCAL inline constexpr WorkloadType attention{"attention"};
WYE_LOCAL inline constexpr WorkloadType graph{"graph"};
WYE_LOCAL inline constexpr WorkloadType timeline{"timeline"};
WYE_LOCAL inline constexpr WorkloadType image{"image"};
WYE_LOCAL inline constexpr WorkloadType audio{"audio"};
WYE_LOCAL inline constexpr WorkloadType simulation{"simulation"};
WYE_LOCAL inline constexpr WorkloadType number_theory{"number-theory"};
WYE_LOCAL inline constexpr WorkloadType rendering{"rendering"};
WYE_LOCAL inline constexpr WorkloadType shader_compilation{"shader-compilation"};
WYE_LOCAL inline constexpr WorkloadType custom{"custom"};
}  // namespace workload_types

/// Selects the behaviour if the first choice of device cannot run a job.
enum class Fallback : std::uint8_t {
  allow,   ///< the next device runs the job; `Ticket::explain` has the reason
  warn,    ///< as `allow`, with a warning in the log
  forbid,  ///< the job fails
};

/// Selects the behaviour of a job if a job that it follows fails or is cancelled.
enum class AfterFailure : std::uint8_t {
  fail,  ///< the job fails with the same error, which names the other job
  run,   ///< the job runs as if the other one had succeeded
};

/// One kernel call, or several calls that run in order on one device. The scheduler places whole
/// jobs.
/// Threads: thread-compatible. Host memory among the arguments is borrowed until the job has
///          completed.
class Job {
 public:
  /// Creates a job of one call, named after its kernel.
  Job(Call call, WorkloadType type = workload_types::custom)  // NOLINT: a call is a job
      : first_(std::move(call)), type_(type) {}
  /// Creates a job of calls that run in order on one device. Each call sees the results of the
  /// calls before it.
  static Job sequence(std::string name, WorkloadType type, Call first, std::vector<Call> rest = {}) {
    Job job(std::move(first), type);
    job.set_label(std::move(name));
    // Not by make_shared, see WYE_LOCAL.
    if (!rest.empty()) job.rest_.reset(new std::vector<Call>(std::move(rest)));
    return job;
  }
  /// Creates a job that builds `kernel` for a device, including the driver's code, and runs
  /// nothing. The first use of the kernel then costs no more than later uses. The job needs no
  /// lane. If `JobOptions::on` is empty, the preferences of shader_compilation choose the device.
  static Job build(const AnyKernel& kernel) {
    Job job(Call(kernel.programs_, {}), workload_types::shader_compilation);
    job.is_build_ = true;
    return job;
  }
  /// Creates a job that cannot run: its ticket returns `error`.
  static Job failed(std::string name, WorkloadType type, Error error) {
    return Job(std::move(name), type, std::move(error));
  }

  std::string_view name() const noexcept {
    return label_ && !label_->name.empty() ? std::string_view(label_->name)
           : first_                        ? first_->name()
                                           : std::string_view("job");
  }
  WorkloadType type() const noexcept { return type_; }
  /// Returns the error of a job that cannot run; null if it can.
  const Error* error() const noexcept { return label_ && label_->error ? &*label_->error : nullptr; }
  bool is_build() const noexcept { return is_build_; }
  std::size_t size() const noexcept { return first_ ? 1 + (rest_ ? rest_->size() : 0) : 0; }
  const Call& operator[](std::size_t i) const { return i == 0 ? *first_ : (*rest_)[i - 1]; }

 private:
  friend struct detail::Internals;
  struct Label {
    std::string name;
    std::optional<Error> error = std::nullopt;
  };

  Job(std::string name, WorkloadType type, Error error) : type_(type) {
    set_label(std::move(name), std::move(error));
  }
  void set_label(std::string name, std::optional<Error> error = std::nullopt) {
    label_.reset(new Label{std::move(name), std::move(error)});  // not by make_shared, see WYE_LOCAL
  }
  /// Releases the arguments of all calls. The job keeps its name and the kernel of its first call.
  void release_arguments() noexcept {
    if (first_) first_->arguments().clear();
    rest_.reset();
  }

  std::optional<Call> first_;
  std::shared_ptr<const std::vector<Call>> rest_;  ///< null: there is one call or none
  std::shared_ptr<const Label> label_;             ///< null: the name is that of the kernel
  WorkloadType type_;
  bool is_build_ = false;
};

/// Options of one job.
struct JobOptions {
  Priority priority = Priority::normal;
  /// Latest start. A job that has not started by then completes as timed_out. A job that has
  /// started is not affected.
  Deadline start_by = {};
  /// Limit of the time from the job's start; unset: `SchedulerOptions::job_time_limit`. A job that
  /// takes longer completes as timed_out. A build that takes longer continues, and later jobs use
  /// its result.
  std::optional<Duration> time_limit = std::nullopt;
  std::optional<Fallback> fallback = std::nullopt;  ///< unset: `SchedulerOptions::fallback`
  std::string_view on = {};  ///< restricts to an adapter ("vulkan:0") or a backend ("vulkan")
  /// Prefers an adapter, a backend, or each "gpu", which names no driver that runs on the CPU. The job runs
  /// there, unless each of these devices refuses it or fails, or another device is expected to complete it
  /// before one of these could start it.
  std::string_view prefer = {};
  std::optional<WorkloadType> type = std::nullopt;  ///< replaces the type of the job
  std::string_view tag = {};                        ///< shown in errors, explanations and the log
  /// The job starts after these jobs of the same runtime have completed, in addition to those that
  /// it follows by arrays.
  std::vector<Dependency> after = {};
  AfterFailure after_failure = AfterFailure::fail;  ///< of a job in `after`
};

}  // namespace wye
