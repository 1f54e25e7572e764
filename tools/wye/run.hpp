#pragma once
/// Runs a workload on each device, and checks its results.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <wye/wye.hpp>

namespace wye_tool {

/// A workload on random operands of one size. Its functions share the operands.
struct Trial {
  std::function<wye::Job()> job;  ///< each call returns a new job on the same operands
  /// Returns the largest error of the results of the last job, as a multiple of its bound: more than 1
  /// is wrong.
  std::function<double()> error;
};

/// A workload that the program knows.
struct Workload {
  std::string_view name;
  std::string_view of;  ///< the meaning of a size: "elements"
  std::uint64_t usual = 0;
  std::uint64_t most = 0;
  Trial (*make)(std::uint64_t size) = nullptr;
};

/// The workloads, by name; none in a build without wye::workloads.
const std::vector<Workload>& workloads();

/// The runs on a device.
struct DeviceRun {
  std::string device;
  std::string name;
  wye::JobTimes first, last;  ///< of the first run, which builds the kernel, and of the last one
  double error = 0;           ///< see `Trial::error`
  std::optional<std::string> failure = std::nullopt;
  bool is_right() const { return !failure && error <= 1; }
};

/// The runs of a workload.
struct RunReport {
  const Workload* workload = nullptr;
  std::uint64_t size = 0;
  std::vector<DeviceRun> devices;
  std::string chosen;  ///< the device that wye chooses
  std::string reason;
};

/// Options of `run`.
struct RunOptions {
  std::string workload;
  std::optional<std::uint64_t> size = std::nullopt;
  std::string device = {};  ///< empty: each device, then the choice of wye
  std::uint32_t repeat = 3;
};

/// Errors: invalid_argument (a workload, size, device or number of runs), those of `Runtime::open`.
wye::Result<RunReport> run(const RunOptions& options);

std::string text_of(const RunReport& report);
std::string json_of(const RunReport& report);

}  // namespace wye_tool
