#pragma once
/// The caller's end of a job.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/executable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {

namespace scheduler {
struct Record;
}

/// A job that is done. Copies share it.
/// Threads: thread-safe.
class WYE_API Outcome {
 public:
  explicit Outcome(std::shared_ptr<const scheduler::Record> record) : record_(std::move(record)) {}
  /// Where it ran.
  const AdapterInfo& device() const;
  std::string_view backend() const { return device().backend; }
  /// Time it waited: from its submission to its start, for devices that failed before this one, and for a lane.
  Duration queue_time() const;
  /// Time until its kernels were ready on the device: compiling and loading. Near zero once they are cached.
  Duration build_time() const;
  /// Time that its operands took to the device before its first kernel, and back after its last one. Copies of less than
  /// 1 MiB are part of `run_time`. Zero on a device that uses host memory in place, unless an array was elsewhere.
  Duration transfer_time() const;
  /// The rest of its time, from its start to its end: that of its kernels.
  Duration run_time() const;
  /// Bytes moved between host and device for it.
  Bytes bytes_transferred() const;
  /// Where its kernels were found; of several, the one that took longest.
  CacheTier cache_tier() const;
  /// One sentence: why there.
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
  kernel_unsupported,  ///< a kernel of the job has no source for it, or needs a feature that it lacks
  foreign_buffer,      ///< an argument of the job is a buffer of another device
  attempt_failed,      ///< see `Candidate::error`
  fallback_forbidden,  ///< a device before it failed, and the job forbids fallback
  lower_preference,    ///< another device comes before it in the preference table
  emulated,            ///< it is a GPU driver that runs on the CPU: it comes after all other devices
};

/// What was decided about one device.
struct Candidate {
  enum class Verdict : std::uint8_t {
    ran,      ///< it completed the job
    refused,  ///< it cannot run the job
    failed,   ///< it was tried and failed
    passed,   ///< it could have run the job; another device came first
  };
  std::string device;  ///< "vulkan:0"
  std::string name;    ///< "llvmpipe (LLVM 15.0.6, 256 bits)"
  Verdict verdict = Verdict::passed;
  std::string reason;  ///< a sentence: "Kernel 'scale' has no source for 'cpu:0' (has Glsl; needs host)."
  RefusalCode code = RefusalCode::none;
  std::optional<Error> error = std::nullopt;  ///< the failure of the device or of the attempt, if it was one
};

/// Why a job ran where it did, device by device in the order they were considered.
struct Explanation {
  std::string job;
  std::vector<Candidate> candidates;
  std::string tag = {};  ///< `JobOptions::tag`
  /// Returns the job and its tag, if it has one, then one line per candidate, starting with the device that ran the job. No
  /// trailing newline.
  WYE_API std::string text() const;
};

/// Waits for, watches, cancels one job. Destroying the ticket of a job that borrows host memory cancels it
/// if it is still queued, and else waits for it; a job that uses arrays only goes on alone.
/// Threads: one thread at a time; the job itself runs on others.
class WYE_API Ticket {
 public:
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&& other) noexcept;
  Ticket(const Ticket&) = delete;  // one job has one owner of its borrowed memory
  ~Ticket();

  /// Waits until the job has settled or `deadline` passes: of this call, not of the job (`JobOptions::start_by`). A job that has not started yet is run by this
  /// thread.
  /// Errors: timed_out (this wait; the job goes on); or how the job failed.
  Result<Outcome> wait(Deadline deadline = {});
  /// Whether the job has settled. Never blocks.
  bool ready() const noexcept;
  /// Calls `then` once with the result, on the thread that settles the job, or at once where it has.
  /// `then` must not block; what it throws is dropped. A second call replaces nothing: both are called.
  void then(std::function<void(const Result<Outcome>&)> then);
  /// Asks the job to stop: at once if it is queued, at its next look at its StopToken if it runs on the host,
  /// and its result is dropped else. The ticket then answers `cancelled`, unless it was done already.
  void cancel();
  /// Which devices were considered, and why the choice fell as it did.
  Explanation explain() const;

  explicit Ticket(std::shared_ptr<scheduler::Record> record);

 private:
  std::shared_ptr<scheduler::Record> record_;
};

}  // namespace v0
}  // namespace wye
