#include "pool/discovery.hpp"

#include <algorithm>
#include <array>
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
                                 const device::BackendOptions& options) {
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
