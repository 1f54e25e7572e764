#include "device/native.hpp"

#include "device/buffer.hpp"
#include "device/device.hpp"

namespace wye::inline v0::device {

bool NativeInterop::reaches(const DeviceBase&) const noexcept { return false; }

bool reaches(DeviceBase& device, const DeviceBase& other) noexcept {
  const NativeInterop* const native = device.native_interop();
  return native && native->reaches(other);
}

}  // namespace wye::device
