#pragma once
/// Access to the driver of a device, for applications and devices that share its objects.
#include <wye/base/result.hpp>
#include <wye/device/detail/native_objects.hpp>
#include <wye/device/native.hpp>

#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"
#include "device/operand.hpp"

namespace wye::inline v0 {

using detail::handle_of;
using detail::NativeMemory;
using detail::NativePoint;
using detail::number_of;

namespace device {

class BufferBase;
class DeviceBase;
class Timeline;

/// Memory that one driver exports to another driver of the same silicon.
struct SharedMemory {
  base::Descriptor file;   ///< the other driver opens it and takes ownership
  Bytes allocation;        ///< size of the driver's allocation, which begins with the buffer
  bool dedicated = false;  ///< the allocation belongs to one buffer; the other driver must know it
};
struct SharedBufferBase {
  std::shared_ptr<BufferBase> buffer;
  SharedMemory memory;
};
/// A foreign timeline that one driver exports to another driver, whose timeline reads the value of
/// the original.
struct SharedTimeline {
  std::shared_ptr<Timeline> timeline;
  base::Descriptor file;
};

/// The objects of a driver. Devices with a driver implement it. The caller passes only objects of
/// this device and backend.
/// Threads: thread-safe.
class NativeInterop {
 public:
  virtual ~NativeInterop() = default;
  virtual NativeDevice native_device() = 0;
  virtual NativeMemory native_memory(BufferBase& buffer) = 0;
  /// Errors: unsupported (the timeline is not an object of the driver).
  virtual Result<NativePoint> native_point(Timeline& timeline, std::uint64_t value) = 0;
  /// Makes a queue of the application wait until `timeline` reaches `value`.
  /// Errors: unsupported, unavailable (no submission reaches `value` yet), device_lost.
  virtual Result<void> follow(std::uint64_t queue, Timeline& timeline, std::uint64_t value) = 0;
  /// Creates a buffer over memory of the application: at least one byte, and no more than the
  /// largest buffer. The buffer calls `release` once when it ends; a failed call does not.
  /// Errors: invalid_argument, out_of_memory, device_lost.
  virtual Result<std::shared_ptr<BufferBase>> adopt_memory(const NativeMemory& memory, Release release) = 0;
  /// Creates a foreign timeline (`Timeline::is_foreign`).
  /// Errors: invalid_argument, device_lost.
  virtual Result<std::shared_ptr<Timeline>> adopt_timeline(const NativePoint& point) = 0;

  /// Creates a buffer in memory that another driver can open.
  /// Errors: unsupported (with the reason), out_of_memory, device_lost.
  virtual Result<SharedBufferBase> create_shared(Bytes bytes) = 0;
  /// Opens a buffer in memory of another driver. Either buffer may end first.
  /// Errors: unsupported (with the reason), out_of_memory, device_lost. Then `memory` is unchanged.
  virtual Result<std::shared_ptr<BufferBase>> open_shared(SharedMemory& memory, Bytes bytes) = 0;
  /// Creates a foreign timeline with value 0 that another driver can open. Lanes of both devices
  /// signal it and wait for it.
  /// Errors: those of `create_shared`.
  virtual Result<SharedTimeline> create_shared_timeline() = 0;
  /// Opens a timeline of another driver for lanes of this device.
  /// Errors: those of `open_shared`.
  virtual Result<std::shared_ptr<Timeline>> open_shared_timeline(SharedTimeline& original) = 0;
  /// Returns whether lanes of this device can copy from buffers of `other`. If so, the source of a
  /// copy may be such a buffer. Its writer must have completed: lanes of two devices do not wait
  /// for each other. The result may become false later.
  virtual bool reaches(const DeviceBase& other) const noexcept;
};

/// Returns whether lanes of `device` can copy from buffers of `other`, another device.
bool reaches(DeviceBase& device, const DeviceBase& other) noexcept;

}  // namespace device
}  // namespace wye
