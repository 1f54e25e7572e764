#pragma once
/// The door of a device to the driver behind it, for a host that uses the same one.
#include <wye/base/result.hpp>
#include <wye/device/native.hpp>

#include <cstdint>
#include <memory>

namespace wye {
inline namespace v0 {
namespace device {

class BufferBase;
class Timeline;

/// Implemented by the devices that have a driver. What is given is of this device and this backend: who calls has seen to it.
/// Threads: thread-safe.
class NativeDoor {
 public:
  virtual ~NativeDoor() = default;
  virtual NativeDevice native_device() = 0;
  virtual NativeMemory native_memory(BufferBase& buffer) = 0;
  /// Errors: unsupported (a timeline that is no object of the driver).
  virtual Result<NativePoint> native_point(Timeline& timeline, std::uint64_t value) = 0;
  /// Errors: unsupported, unavailable (nobody has submitted what reaches `value`), device_lost.
  virtual Result<void> follow(std::uint64_t queue, Timeline& timeline, std::uint64_t value) = 0;
  /// A buffer over memory of the host's; calls `release` once at its end, and not where this fails.
  /// Errors: invalid_argument, out_of_memory, device_lost.
  virtual Result<std::shared_ptr<BufferBase>> adopt_memory(const NativeMemory& memory, Release release) = 0;
  /// A timeline that others move (`Timeline::is_foreign`).
  /// Errors: invalid_argument, device_lost.
  virtual Result<std::shared_ptr<Timeline>> adopt_timeline(const NativePoint& point) = 0;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
