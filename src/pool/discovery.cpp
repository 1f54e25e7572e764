#include "pool/discovery.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "device/backend.hpp"

namespace wye {
inline namespace v0 {
namespace pool {
namespace {

constexpr std::array<std::string_view, 3> default_order{"cuda", "vulkan", "cpu"};

const device::BackendEntry* find(std::string_view name) {
  for (const device::BackendEntry& entry : device::backend_table())
    if (entry.name == name) return &entry;
  return nullptr;
}

std::string names_of_this_build() {
  std::string names;
  for (const device::BackendEntry& entry : device::backend_table()) {
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

/// Puts the host's devices before what was found, and takes out what they replace.
Result<void> put_adopted(const std::vector<NativeDevice>& adopt, const device::BackendOptions& options,
                         std::vector<device::Discovered>& found) {
  std::vector<device::Discovered> brought;
  for (const NativeDevice& native : adopt) {
    const device::BackendEntry* entry = find(native.backend);
    if (!entry) return Error(Errc::not_found, absent(native.backend).reason);
    const auto before = std::count_if(brought.begin(), brought.end(), [&](const device::Discovered& one) {
      return one.info.backend == native.backend;
    });
    std::string id = base::text("{}:host", native.backend);
    if (before != 0) id += std::to_string(before);
    auto adopted = entry->make()->adopt(native, std::move(id), options);
    if (!adopted) return std::move(adopted).error();
    for (device::Discovered& own : found)
      if (own.info.backend == native.backend && own.info.usable &&
          own.info.device_uuid == adopted->info.device_uuid) {
        own.adapter.reset();
        own.info.usable = false;
        own.info.reason = base::text("The host has opened this device itself ('{}').", adopted->info.id);
      }
    brought.push_back(*std::move(adopted));
  }
  found.insert(found.begin(), std::make_move_iterator(brought.begin()),
               std::make_move_iterator(brought.end()));
  return {};
}

/// A driver for GPUs whose device is this very CPU.
bool is_emulated(const AdapterInfo& info) { return info.type == AdapterType::cpu && info.backend != "cpu"; }

std::string why_nothing(const std::vector<AdapterInfo>& adapters) {
  std::string reasons;
  for (const AdapterInfo& info : adapters) {
    if (!reasons.empty()) reasons += ' ';
    reasons += base::text("{}: {}", info.id, info.reason);
  }
  return reasons;
}

}  // namespace

Result<Inventory> take_inventory(const std::vector<std::string>& backends,
                                 const device::BackendOptions& options,
                                 const std::vector<NativeDevice>& adopt) {
  std::vector<device::Discovered> found;
  auto look = [&](std::string_view name) {
    if (const device::BackendEntry* entry = find(name)) {
      for (device::Discovered& one : entry->make()->discover(options)) found.push_back(std::move(one));
    } else {
      found.push_back({absent(name), nullptr});
    }
  };
  for (const std::string& name : backends) {
    // A name of the default order is a known one, even to a build without it: its absence has a reason, as any other.
    const bool known = std::find(default_order.begin(), default_order.end(), name) != default_order.end();
    if (!find(name) && !known) return Error(Errc::not_found, absent(name).reason);
    look(name);
  }
  if (backends.empty())
    for (std::string_view name : default_order) look(name);

  if (auto put = put_adopted(adopt, options, found); !put) return std::move(put).error();
  std::stable_partition(found.begin(), found.end(),
                        [](const device::Discovered& one) { return !is_emulated(one.info); });

  Inventory inventory;
  for (device::Discovered& one : found) {
    if (one.adapter) {
      if (auto opened = one.adapter->open()) {
        inventory.devices.push_back(std::move(*opened));
      } else {
        one.info.usable = false;
        one.info.reason = opened.error().sentence();
      }
    }
    inventory.adapters.push_back(std::move(one.info));
  }
  if (inventory.devices.empty())
    return Error(Errc::unavailable, base::text("No device can be used. {}", why_nothing(inventory.adapters)));
  return inventory;
}

}  // namespace pool
}  // namespace v0
}  // namespace wye
