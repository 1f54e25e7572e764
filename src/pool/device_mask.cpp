#include "pool/device_mask.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>

#include "base/text.hpp"

namespace wye::inline v0::pool {
namespace {

bool is_id(std::string_view name) { return name.find(':') != name.npos; }

/// Returns a UUID in the form of `to_string(Uuid)`.
std::string plain_uuid(std::string_view name) {
  for (const std::string_view prefix : {"GPU-", "MIG-"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  std::string uuid(name);
  std::ranges::transform(uuid, uuid.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return uuid;
}

bool names(std::string_view name, const AdapterInfo& info) {
  if (is_id(name)) return name == info.id;
  return info.device_uuid != Uuid{} && plain_uuid(name) == to_string(info.device_uuid);
}

}  // namespace

Result<void> DeviceMask::check() const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty())
      return base::invalid(base::text("PoolOptions::devices has an empty name (entry {}).", i));
    if (std::ranges::count(names_, names_[i]) > 1)
      return base::invalid(base::text("PoolOptions::devices names '{}' twice.", names_[i]));
  }
  return {};
}

bool DeviceMask::may_name(std::string_view backend) const {
  return names_.empty() || std::ranges::any_of(names_, [&](const std::string& name) {
           return !is_id(name) || name.substr(0, name.find(':')) == backend;
         });
}

std::vector<std::string> DeviceMask::apply(std::vector<device::Discovered>& found) const {
  if (names_.empty()) return {};
  std::vector<device::Discovered> selected;
  std::vector<std::string> missing;
  std::vector<bool> is_taken(found.size());
  for (const std::string& name : names_) {
    bool is_there = false;
    for (std::size_t f = 0; f < found.size(); ++f) {
      if (!names(name, found[f].info)) continue;
      is_there = true;
      if (!is_taken[f]) selected.push_back(found[f]);
      is_taken[f] = true;
    }
    if (!is_there) missing.push_back(name);
  }
  std::map<std::string, std::size_t> numbers;
  for (device::Discovered& one : selected)
    one.info.id = base::text("{}:{}", one.info.backend, numbers[one.info.backend]++);
  // The order of backends is that of their preference.
  std::vector<std::string> backends;
  for (const device::Discovered& one : found)
    if (std::ranges::find(backends, one.info.backend) == backends.end()) backends.push_back(one.info.backend);
  std::ranges::stable_sort(selected, {}, [&](const device::Discovered& one) {
    return std::ranges::find(backends, one.info.backend) - backends.begin();
  });
  found = std::move(selected);
  return missing;
}

}  // namespace wye::pool
