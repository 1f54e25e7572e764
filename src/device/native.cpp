#include "device/native.hpp"

#include "device/buffer.hpp"
#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace device {

bool NativeDoor::reaches(const DeviceBase&) const noexcept { return false; }

bool reaches(DeviceBase& device, const DeviceBase& other) noexcept {
  const NativeDoor* const door = device.native_door();
  return door && door->reaches(other);
}

const DeviceBase& source_device(const Operand& source, const DeviceBase& device) {
  if (source.kind != Operand::Kind::buffer || !source.object) return device;
  const DeviceBase& other = *buffer_of(source)->device();
  // A lane has its device to look at only here; the door is only asked.
  return &other != &device && reaches(const_cast<DeviceBase&>(device), other) ? other : device;
}

}  // namespace device
}  // namespace v0
}  // namespace wye
