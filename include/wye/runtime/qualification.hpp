#pragma once
/// Qualification: checks of a device with known answers, made before the first job.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/device.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0 {

/// The result of a check.
enum class CheckState : std::uint8_t {
  passed,
  failed,   ///< the answer was wrong, or the driver refused the kernel
  stopped,  ///< the device did not complete it in time, or was lost; later checks were not made
  skipped,  ///< the device does not offer the feature, or wye has no kernel or no compiler for it here
};

/// Returns "passed" and the like.
WYE_API std::string_view name(CheckState state) noexcept;

/// One check of a device.
struct QualificationCheck {
  std::string name;                               ///< "barriers", "int64"
  std::optional<Feature> feature = std::nullopt;  ///< that it checks; unset: every device must pass it
  CheckState state = CheckState::skipped;
  std::string detail = {};  ///< a sentence with the reason, unless it passed
  Duration took{};          ///< with the compilation of its kernel
  friend bool operator==(const QualificationCheck&, const QualificationCheck&) = default;
};

/// The checks of a device and of one build of its driver.
struct QualificationReport {
  std::string device = {};  ///< "vulkan:0"
  std::string name = {};    ///< of the hardware
  std::string driver = {};  ///< name and version
  std::vector<QualificationCheck> checks = {};
  bool is_stored =
      false;  ///< the checks were made by an earlier call or process, for the same build of the driver
  std::uint64_t loop_iterations = 0;  ///< `Limits::loop_iterations`, as check "loops" has measured it

  /// Returns whether the device can be trusted without the features that failed.
  WYE_API bool passed() const noexcept;
  /// Returns whether a check was stopped.
  WYE_API bool stopped() const noexcept;
  /// Returns the features that failed their checks.
  WYE_API Features failed_features() const noexcept;
  /// Returns a line for each check, to display.
  WYE_API std::string text() const;
};

/// Selects when a runtime checks the GPUs that it opens.
enum class Qualification : std::uint8_t {
  stored,  ///< unless the cache has the report of an earlier check of this device and this build of its
           ///< driver; without a store, unless this process has checked it and no runtime has lost it
  again,   ///< always; stores the report
  never,
};

/// Options of `qualify`.
struct QualificationOptions {
  /// Limits each check. A check that reaches the limit has failed, and is the last: the work on the
  /// device is abandoned.
  Duration check_timeout = std::chrono::seconds(10);
};

/// Checks a device: copies, a timeline, and kernels for integers, floats, barriers, atomics,
/// specialization constants, buffer addresses, and for each feature of `device.info()`. Answers are
/// compared with those of the host.
///
/// Makes all checks at each call, with a lane and some 100 KiB of memory of its own; no lease is
/// needed. A runtime makes the same checks when it opens a GPU (`RuntimeOptions::qualification`).
/// Threads: thread-safe. One thread makes the checks while the caller waits; if a call of the
///          driver does not return, that thread is abandoned.
/// Errors:  invalid_argument (no device, or a limit that is not positive); out_of_memory,
///          unavailable (no thread can be started): no check has failed then, and some were not
///          made.
/// Cost:    the compilation of some 15 kernels; see bench/results.
WYE_API Result<QualificationReport> qualify(const Device& device, const QualificationOptions& options = {});

}  // namespace wye
