#pragma once
/// Access to the driver of a device, for a host that uses the same driver.
#include <wye/base/result.hpp>
#include <wye/device/detail/native_objects.hpp>
#include <wye/device/native.hpp>

#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"
#include "device/operand.hpp"

namespace wye {
inline namespace v0 {

using detail::handle_of;
using detail::NativeMemory;
using detail::NativePoint;
using detail::number_of;

namespace device {

class BufferBase;
class DeviceBase;
class Timeline;

/// Memory on its way from one driver to another one of the same silicon.
struct SharedMemory {
  base::Descriptor file;   ///< the other driver opens it, and owns it then
  Bytes allocation;        ///< size of the driver's allocation; a buffer is its beginning
  bool dedicated = false;  ///< it belongs to one buffer, which the other driver must know
};
struct SharedBufferBase {
  std::shared_ptr<BufferBase> buffer;
  SharedMemory memory;
};
/// A foreign timeline on its way to another driver, whose timeline asks the original for its value.
struct SharedTimeline {
  std::shared_ptr<Timeline> timeline;
  base::Descriptor file;
};

/// Implemented by the devices that have a driver. The caller passes objects of this device and this backend only.
/// Threads: thread-safe.
class NativeDoor {
 public:
  virtual ~NativeDoor() = default;
  virtual NativeDevice native_device() = 0;
  virtual NativeMemory native_memory(BufferBase& buffer) = 0;
  /// Errors: unsupported (a timeline that is no object of the driver).
  virtual Result<NativePoint> native_point(Timeline& timeline, std::uint64_t value) = 0;
  /// Errors: unsupported, unavailable (no submission reaches `value` yet), device_lost.
  virtual Result<void> follow(std::uint64_t queue, Timeline& timeline, std::uint64_t value) = 0;
  /// Creates a buffer over memory of the host: at least one byte, and no more than the largest buffer. It calls
  /// `release` once at its end, but not if this fails.
  /// Errors: invalid_argument, out_of_memory, device_lost.
  virtual Result<std::shared_ptr<BufferBase>> adopt_memory(const NativeMemory& memory, Release release) = 0;
  /// Creates a foreign timeline (`Timeline::is_foreign`).
  /// Errors: invalid_argument, device_lost.
  virtual Result<std::shared_ptr<Timeline>> adopt_timeline(const NativePoint& point) = 0;

  /// Creates a buffer in memory that another driver can open.
  /// Errors: unsupported (with the reason), out_of_memory, device_lost.
  virtual Result<SharedBufferBase> create_shared(Bytes bytes) = 0;
  /// Opens a buffer in memory that another driver made. Either may end first.
  /// Errors: unsupported (with the reason), out_of_memory, device_lost. Then `memory` is unchanged.
  virtual Result<std::shared_ptr<BufferBase>> open_shared(SharedMemory& memory, Bytes bytes) = 0;
  /// Creates a foreign timeline at 0 that another driver can open: lanes of both signal it and wait for it.
  /// Errors: as of `create_shared`.
  virtual Result<SharedTimeline> create_shared_timeline() = 0;
  /// Opens the same timeline for lanes of this device.
  /// Errors: as of `open_shared`.
  virtual Result<std::shared_ptr<Timeline>> open_shared_timeline(SharedTimeline& original) = 0;
  /// Returns whether lanes of this device can copy from buffers of `other`: then the source of a copy may be such a buffer.
  /// Its writer must have completed: lanes of two devices do not wait for each other. The answer may become false later.
  virtual bool reaches(const DeviceBase& other) const noexcept;
};

/// Returns whether lanes of `device` can copy from buffers of `other`, another device.
bool reaches(DeviceBase& device, const DeviceBase& other) noexcept;
/// Returns the device that `source` of a copy in a lane of `device` must be on: that of the buffer if `device` reaches it,
/// otherwise `device`.
const DeviceBase& source_device(const Operand& source, const DeviceBase& device);

}  // namespace device
}  // namespace v0
}  // namespace wye
