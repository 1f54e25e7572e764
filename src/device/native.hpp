#pragma once
/// The door of a device to the driver behind it, for a host that uses the same one.
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
  base::Descriptor file;   ///< what the other driver opens it by, and owns when it has
  Bytes allocation;        ///< the whole of what the driver allocated; a buffer is its beginning
  bool dedicated = false;  ///< it is one buffer's alone, which the other driver has to be told
};
struct SharedBufferBase {
  std::shared_ptr<BufferBase> buffer;
  SharedMemory memory;
};
/// A foreign timeline on its way: who opens it asks the original how far it is.
struct SharedTimeline {
  std::shared_ptr<Timeline> timeline;
  base::Descriptor file;
};

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

  /// A buffer in memory that another driver can open.
  /// Errors: unsupported, saying why this driver shares none; out_of_memory, device_lost.
  virtual Result<SharedBufferBase> create_shared(Bytes bytes) = 0;
  /// A buffer in memory that another driver made. Either may end first.
  /// Errors: unsupported, saying why this driver opens none or not this one; out_of_memory, device_lost. Then `memory` is
  ///         as it was.
  virtual Result<std::shared_ptr<BufferBase>> open_shared(SharedMemory& memory, Bytes bytes) = 0;
  /// A foreign timeline, at 0, that another driver can open too: lanes of both signal it and wait for it.
  /// Errors: as of `create_shared`.
  virtual Result<SharedTimeline> create_shared_timeline() = 0;
  /// The same timeline for lanes of this device.
  /// Errors: as of `open_shared`.
  virtual Result<std::shared_ptr<Timeline>> open_shared_timeline(SharedTimeline& original) = 0;
  /// Whether lanes of this device copy out of buffers of `other` by themselves: then the source of a copy may be one. What
  /// wrote it has to be over: lanes of two devices do not wait for each other. Asked again it may have become false.
  virtual bool reaches(const DeviceBase& other) const noexcept;
};

/// Whether lanes of `device` copy out of buffers of `other`, another one.
bool reaches(DeviceBase& device, const DeviceBase& other) noexcept;
/// The device whose buffer `source`, of a copy in a lane of `device`, has to be: that of the buffer where `device` reaches it,
/// else `device`.
const DeviceBase& source_device(const Operand& source, const DeviceBase& device);

}  // namespace device
}  // namespace v0
}  // namespace wye
