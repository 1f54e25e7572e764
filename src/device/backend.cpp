#include "device/backend.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "device/device.hpp"

namespace wye::inline v0::device {

Adapter::~Adapter() = default;
Backend::~Backend() = default;

Result<Discovered> Backend::adopt(const NativeDevice&, std::string id, const BackendOptions&) {
  return Error(Errc::unsupported,
               base::text("Backend '{}' cannot adopt a device of the application ('{}').", name(), id));
}

const BackendEntry* find_backend(std::string_view name) noexcept {
  for (const BackendEntry& entry : backend_table())
    if (entry.name == name) return &entry;
  return nullptr;
}

std::vector<std::string_view> backend_order(BackendKind first) {
  std::vector<BackendEntry> entries(backend_table().begin(), backend_table().end());
  std::erase_if(entries, [](const BackendEntry& e) { return e.descriptor.kind == BackendKind::none; });
  const auto place = [&](const BackendEntry& e) {
    return std::tuple(e.descriptor.kind != first, e.descriptor.kind, e.descriptor.rank);
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const BackendEntry& a, const BackendEntry& b) { return place(a) < place(b); });
  std::vector<std::string_view> names;
  for (const BackendEntry& entry : entries) names.push_back(entry.name);
  return names;
}

bool is_emulated(const AdapterInfo& info) noexcept {
  const BackendEntry* const entry = find_backend(info.backend);
  return info.type == AdapterType::cpu && entry && entry->descriptor.kind == BackendKind::gpu;
}

}  // namespace wye::device
