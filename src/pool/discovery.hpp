#pragma once
/// Finding out what this machine has.
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>

#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace pool {

/// What was found, and what of it is open.
struct Inventory {
  std::vector<AdapterInfo> adapters;                         ///< usable or not, preferred first
  std::vector<std::shared_ptr<device::DeviceBase>> devices;  ///< the open ones, preferred first
};

/// Opens every usable device of `backends`, in that order; empty means the default order. A graphics driver
/// whose device is really the CPU comes after everything else: it is there for correctness, not for speed.
/// Devices of the host's (`adopt`) are "vulkan:host", "vulkan:host1" ..., before the backend's own; of the same silicon
/// they take the place of those.
/// Errors: not_found (a name this build does not have), unavailable (nothing usable, with every reason); those of
///         `Backend::adopt`.
Result<Inventory> take_inventory(const std::vector<std::string>& backends,
                                 const device::BackendOptions& options,
                                 const std::vector<NativeDevice>& adopt = {});

}  // namespace pool
}  // namespace v0
}  // namespace wye
