#include "device/backend.hpp"

#include "base/text.hpp"
#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace device {

Adapter::~Adapter() = default;
Backend::~Backend() = default;

Result<Discovered> Backend::adopt(const NativeDevice&, std::string id, const BackendOptions&) {
  return Error(Errc::unsupported,
               base::text("Backend '{}' takes no device that the host has opened ('{}').", name(), id));
}

}  // namespace device
}  // namespace v0
}  // namespace wye
