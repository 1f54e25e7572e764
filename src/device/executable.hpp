#pragma once
/// Executables as a backend implements them.
#include <wye/base/bytes.hpp>
#include <wye/device/adapter.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "device/artefact.hpp"

namespace wye::inline v0::device {

class DeviceBase;

/// A kernel that is built for one device.
/// Threads: thread-safe.
class ExecutableBase {
 public:
  virtual ~ExecutableBase();
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  /// Returns the artefact that it was created from, without the code.
  const Artefact& artefact() const noexcept { return artefact_; }
  /// Returns the memory that it takes; 0 if the driver does not report it.
  virtual Bytes bytes() const noexcept = 0;
  /// Returns the number of its workgroups that the otherwise idle device runs at the same time; 0
  /// if unknown.
  virtual std::uint64_t resident_groups() const noexcept { return 0; }
  /// Returns the workgroups of the longest grid of one row (y = z = 1), if that is more than
  /// `Limits::groups`.
  virtual std::uint64_t row_groups() const noexcept { return 0; }
  /// Returns whether its loops may have more iterations than `Limits::loop_iterations`. The driver
  /// then ends them early, and results are wrong.
  virtual bool may_end_loops_early() const noexcept { return false; }

 protected:
  ExecutableBase(std::shared_ptr<DeviceBase> device, Artefact artefact);

 private:
  std::shared_ptr<DeviceBase> device_;
  Artefact artefact_;
};

/// Returns the sentence about a kernel whose executable `may_end_loops_early`.
std::string early_loop_ends(std::string_view kernel, const AdapterInfo& adapter);

}  // namespace wye::device
