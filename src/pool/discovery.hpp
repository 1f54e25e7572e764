#pragma once
/// Discovers the adapters of this machine and opens them.
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"
#include "device/device.hpp"
#include "device/provider.hpp"

namespace wye::inline v0::pool {

/// The adapters that were found, and the devices that were opened.
struct Inventory {
  std::vector<AdapterInfo> adapters;                         ///< usable or not, preferred first
  std::vector<std::shared_ptr<device::DeviceBase>> devices;  ///< preferred first
  /// For each device its adapter, if that can open it again after a loss; otherwise null.
  std::vector<std::shared_ptr<device::Adapter>> reopened_by = {};
  /// Finds the adapters again, for `ContextPool::rescan`; null: there are no others.
  std::function<Result<std::vector<device::Discovered>>()> discover = {};
};

/// The adapters that a pool uses: `PoolOptions::backends` and `PoolOptions::devices`.
struct Selection {
  std::vector<std::string> backends = {};
  std::vector<std::string> devices = {};
};

/// Finds the selected adapters, without devices of the application; see `take_inventory`. Names of
/// devices that are not there, such as a GPU that was removed, are added to `missing`.
/// Errors:  not_found (a backend that this build does not have).
Result<std::vector<device::Discovered>> find_adapters(const Selection& selection,
                                                      const device::BackendOptions& options,
                                                      std::vector<std::string>& missing);

/// Opens an adapter, names it `id`, and has `qualifier` check it, unless that is null.
Result<std::shared_ptr<device::DeviceBase>> open_adapter(device::Adapter& adapter, const std::string& id,
                                                         device::Qualifier* qualifier);

/// Returns whether an adapter that was found is that of `known`. If they have no UUID, `id` is the
/// id that its backend gave it.
bool is_same_adapter(const AdapterInfo& found, const AdapterInfo& known, std::string_view id) noexcept;

/// Marks an adapter as not usable.
void refuse(AdapterInfo& adapter, const Error& reason);
/// Notes in the description of an adapter the features of its device, or why it could not be
/// opened.
void note_opened(AdapterInfo& adapter, const Result<std::shared_ptr<device::DeviceBase>>& opened);

/// Returns whether the application has opened a device itself, by its id.
bool is_adopted(const AdapterInfo& info) noexcept;

/// Opens every usable device of `selection`, in the order of its backends; no backend means the
/// default order. A
/// graphics driver that runs on the CPU comes after all other devices: it is for correctness, not
/// for speed. Devices of the application (`adopt`) are "vulkan:host", "vulkan:host1" ... They come
/// first, and replace the backend's own device of the same silicon. Devices that `qualifier` does
/// not trust are not usable; it may be null, and does not check the application's devices.
/// Errors:  not_found (a backend that this build does not have, a device that is not there),
///          invalid_argument (a repeated or empty name of a device), unavailable (no usable device,
///          with every reason); those of `Backend::adopt`.
Result<Inventory> take_inventory(const Selection& selection, const device::BackendOptions& options,
                                 const std::vector<NativeDevice>& adopt = {},
                                 device::Qualifier* qualifier = nullptr);

}  // namespace wye::pool
