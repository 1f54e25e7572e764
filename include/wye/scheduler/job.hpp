#pragma once
/// What a scheduler takes.
#include <wye/base/clock.hpp>
#include <wye/kernel/call.hpp>
#include <wye/kernel/kernel.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {

/// What kind of work a job is: the row of the preference table it is looked up in. Hosts may add their own:
/// `inline constexpr wye::WorkloadType physics{"physics"};`.
struct WorkloadType {
  std::string_view name;  ///< of static storage
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
WYE_LOCAL inline constexpr WorkloadType shader_compilation{"shader-compilation"};
WYE_LOCAL inline constexpr WorkloadType custom{"custom"};
}  // namespace workload_types

/// Which of the waiting jobs starts first.
enum class Priority : std::uint8_t { low, normal, high };

/// What happens when the device that was chosen first cannot do a job.
enum class Fallback : std::uint8_t {
  allow,   ///< the next one does it; the ticket says so
  warn,    ///< the same, and a line in the log
  forbid,  ///< the job fails
};

/// One kernel call, or several that run in order on one device; the smallest unit of placement.
/// Threads: thread-compatible. Host memory among the arguments is borrowed until the job has settled.
class Job {
 public:
  /// One call; its name is the kernel's.
  Job(Call call, WorkloadType type = workload_types::custom)  // NOLINT: a call is a job
      : first_(std::move(call)), type_(type) {}
  /// Steps that run in order on one device; what one writes the next can read.
  static Job sequence(std::string name, WorkloadType type, Call first, std::vector<Call> rest = {}) {
    Job job(std::move(first), type);
    job.name_ = std::move(name);
    job.rest_ = std::move(rest);
    return job;
  }
  /// Makes `kernel` ready on the device it is placed on and runs nothing: code of the driver's too, so that its first
  /// use costs what every use does. It takes no lane. Where `JobOptions::on` names no device, it is for the one that
  /// comes first for shader_compilation.
  static Job build(const AnyKernel& kernel) {
    Job job(Call(kernel.programs(), {}), workload_types::shader_compilation);
    job.is_build_ = true;
    return job;
  }
  /// A job that is known to be impossible: its ticket says why.
  static Job failed(std::string name, WorkloadType type, Error error) {
    return Job(std::move(name), type, std::move(error));
  }

  std::string_view name() const noexcept {
    return !name_.empty() ? std::string_view(name_) : first_ ? first_->name() : std::string_view("job");
  }
  WorkloadType type() const noexcept { return type_; }
  const std::optional<Error>& error() const noexcept { return error_; }
  bool is_build() const noexcept { return is_build_; }
  std::size_t size() const noexcept { return first_ ? 1 + rest_.size() : 0; }
  const Call& operator[](std::size_t i) const { return i == 0 ? *first_ : rest_[i - 1]; }

 private:
  Job(std::string name, WorkloadType type, Error error)
      : name_(std::move(name)), type_(type), error_(std::move(error)) {}
  std::optional<Call> first_;
  std::vector<Call> rest_;
  std::string name_;
  WorkloadType type_;
  std::optional<Error> error_;
  bool is_build_ = false;
};

/// How a job is to be treated.
struct JobOptions {
  Priority priority = Priority::normal;
  /// The latest start: a job that has not started by then settles as timed_out. A job that has started is not affected.
  Deadline start_by = {};
  /// The longest run, from the start; unset: the scheduler's. A job that takes longer settles as timed_out. A build that
  /// takes longer goes on, and later jobs use its result.
  std::optional<Duration> time_limit = std::nullopt;
  std::optional<Fallback> fallback = std::nullopt;  ///< unset: the scheduler's
  std::string_view on = {};                         ///< only this adapter ("vulkan:0") or backend ("vulkan")
  std::optional<WorkloadType> type = std::nullopt;  ///< instead of the job's own
  std::string_view tag = {};                        ///< shown in errors, explanations and the log
};

}  // namespace v0
}  // namespace wye
