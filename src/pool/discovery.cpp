#include "pool/discovery.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "device/backend.hpp"
#include "pool/device_mask.hpp"

namespace wye::inline v0::pool {
namespace {

constexpr std::string_view host_suffix = ":host";  // of the ids of the application's devices

std::string names_of_this_build() {
  std::string names;
  for (const device::BackendEntry& entry : device::backend_table()) {
    if (!entry.make) continue;
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

AdapterInfo absent(std::string_view name) {
  AdapterInfo info;
  info.id = info.backend = std::string(name);
  info.reason = base::text("This build of wye has no backend '{}' (it has {}).", name, names_of_this_build());
  return info;
}

/// Inserts the application's devices before the discovered devices, and disables the devices that
/// they replace.
Result<void> insert_adopted(const std::vector<NativeDevice>& adopt, const device::BackendOptions& options,
                            std::vector<device::Discovered>& found) {
  std::vector<device::Discovered> adopted_devices;
  for (const NativeDevice& native : adopt) {
    const device::BackendEntry* entry = device::find_backend(native.backend);
    if (!entry || !entry->make) return Error(Errc::not_found, absent(native.backend).reason);
    const auto before =
        std::count_if(adopted_devices.begin(), adopted_devices.end(),
                      [&](const device::Discovered& one) { return one.info.backend == native.backend; });
    std::string id = native.backend + std::string(host_suffix);
    if (before != 0) id += std::to_string(before);
    auto adopted = entry->make()->adopt(native, std::move(id), options);
    if (!adopted) return std::move(adopted).error();
    for (device::Discovered& own : found)
      if (own.info.backend == native.backend && own.info.usable &&
          own.info.device_uuid == adopted->info.device_uuid) {
        own.adapter.reset();
        own.info.usable = false;
        own.info.reason =
            base::text("The application has opened this device itself ('{}').", adopted->info.id);
      }
    adopted->is_adopted = true;
    adopted_devices.push_back(*std::move(adopted));
  }
  found.insert(found.begin(), std::make_move_iterator(adopted_devices.begin()),
               std::make_move_iterator(adopted_devices.end()));
  return {};
}

std::string all_reasons(const std::vector<AdapterInfo>& adapters) {
  std::string reasons;
  for (const AdapterInfo& info : adapters) {
    if (!reasons.empty()) reasons += ' ';
    reasons += base::text("{}: {}", info.id, info.reason);
  }
  return reasons;
}

/// Returns the error of a device that is not there, with the adapters that are.
Error not_there(const std::string& name, const Selection& selection, const device::BackendOptions& options) {
  std::vector<std::string> none;
  std::string list;
  if (const auto all = find_adapters({.backends = selection.backends}, options, none))
    for (const device::Discovered& one : *all) {
      if (!list.empty()) list += ", ";
      list += one.adapter ? base::text("{} ({})", one.info.id, to_string(one.info.device_uuid))
                          : base::text("{}: {}", one.info.id, base::clause(one.info.reason));
    }
  return Error(Errc::not_found, base::text("There is no device '{}' (PoolOptions::devices); there are: {}.",
                                           name, list.empty() ? "none" : list));
}

}  // namespace

Result<std::vector<device::Discovered>> find_adapters(const Selection& selection,
                                                      const device::BackendOptions& options,
                                                      std::vector<std::string>& missing) {
  const std::vector<std::string>& backends = selection.backends;
  const DeviceMask mask(selection.devices);
  std::vector<device::Discovered> found;
  for (const std::string& name : backends)
    if (!device::find_backend(name)) return Error(Errc::not_found, absent(name).reason);
  std::vector<std::string_view> order;
  if (backends.empty()) order = device::backend_order(device::BackendKind::gpu);
  for (const std::string& name : backends)  // a repeated name would open its devices twice
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  for (const std::string_view name : order) {
    if (!mask.may_name(name)) continue;
    // A backend that this build leaves out is listed with its reason.
    const device::BackendEntry* const entry = device::find_backend(name);
    if (!entry->make)
      found.push_back({absent(name), nullptr});
    else
      for (device::Discovered& one : entry->make()->discover(options)) found.push_back(std::move(one));
  }
  missing = mask.apply(found);
  return found;
}

Result<std::shared_ptr<device::DeviceBase>> open_adapter(device::Adapter& adapter, const std::string& id,
                                                         device::Qualifier* qualifier) {
  auto opened = adapter.open();
  if (!opened) return opened;
  if ((*opened)->info().id != id) (*opened)->rename(id);
  if (qualifier)
    if (auto trusted = qualifier->qualify(*opened); !trusted) return std::move(trusted).error();
  return opened;
}

bool is_same_adapter(const AdapterInfo& found, const AdapterInfo& known, std::string_view id) noexcept {
  if (found.backend != known.backend) return false;
  return found.device_uuid == Uuid{} && known.device_uuid == Uuid{} ? found.id == id
                                                                    : found.device_uuid == known.device_uuid;
}

void refuse(AdapterInfo& adapter, const Error& reason) {
  adapter.usable = false;
  adapter.reason = reason.sentence();
}

void note_opened(AdapterInfo& adapter, const Result<std::shared_ptr<device::DeviceBase>>& opened) {
  if (!opened) return refuse(adapter, opened.error());
  adapter.features = (*opened)->info().features;
  adapter.failed_features = (*opened)->info().failed_features;
  adapter.limits.loop_iterations = (*opened)->info().limits.loop_iterations;
}

bool is_adopted(const AdapterInfo& info) noexcept {
  return std::string_view(info.id).substr(info.backend.size()).starts_with(host_suffix);
}

Result<Inventory> take_inventory(const Selection& selection, const device::BackendOptions& options,
                                 const std::vector<NativeDevice>& adopt, device::Qualifier* qualifier) {
  if (auto ok = DeviceMask(selection.devices).check(); !ok) return std::move(ok).error();
  std::vector<std::string> missing;
  auto discovered = find_adapters(selection, options, missing);
  if (!discovered) return std::move(discovered).error();
  std::vector<device::Discovered> found = *std::move(discovered);
  if (!missing.empty()) return not_there(missing.front(), selection, options);
  if (auto inserted = insert_adopted(adopt, options, found); !inserted) return std::move(inserted).error();
  std::stable_partition(found.begin(), found.end(),
                        [](const device::Discovered& one) { return !device::is_emulated(one.info); });

  Inventory inventory;
  for (device::Discovered& one : found) {
    if (one.adapter) {
      auto opened = open_adapter(*one.adapter, one.info.id, one.is_adopted ? nullptr : qualifier);
      note_opened(one.info, opened);
      if (opened) {
        inventory.devices.push_back(std::move(*opened));
        inventory.reopened_by.push_back(one.adapter->can_reopen() ? one.adapter : nullptr);
      }
    }
    inventory.adapters.push_back(std::move(one.info));
  }
  if (inventory.devices.empty())
    return Error(Errc::unavailable, base::text("No device can be used. {}", all_reasons(inventory.adapters)));
  return inventory;
}

}  // namespace wye::pool
