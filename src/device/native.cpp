#include "device/native.hpp"

#include "device/buffer.hpp"
#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace device {

bool NativeInterop::reaches(const DeviceBase&) const noexcept { return false; }

bool reaches(DeviceBase& device, const DeviceBase& other) noexcept {
  const NativeInterop* const native = device.native_interop();
  return native && native->reaches(other);
}

const DeviceBase& source_device(const Operand& source, const DeviceBase& device) {
  if (source.kind != Operand::Kind::buffer || !source.object) return device;
  const DeviceBase& other = *buffer_of(source)->device();
  // The check has a const device; `reaches` does not change it.
  return &other != &device && reaches(const_cast<DeviceBase&>(device), other) ? other : device;
}

}  // namespace device
}  // namespace v0
}  // namespace wye
