#include "cache/history.hpp"

#include <algorithm>

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

using namespace std::chrono_literals;

/// The key covers everything that goes into a build, except the driver.
constexpr Duration failure_lifetime = 10min;
constexpr std::size_t most_absences = 512;
constexpr std::size_t most_records = 10'000;

}  // namespace

UseRecord* UseHistory::record(const Entry& entry, const device::DeviceBase& device,
                              const std::string& kernel) {
  std::pair<Digest, std::string> name(entry.key.digest, device.info().id);
  if (records_.size() >= most_records && !records_.contains(name)) return nullptr;
  const auto [place, is_new] = records_.try_emplace(std::move(name));
  UseRecord& record = place->second;
  if (is_new) {
    record.order = records_.size();
    record.entry = {entry.key.digest, kernel, device.info().backend, device.info().name};
    record.metrics.kernel = kernel;
    record.metrics.device = device.info().id;
  }
  ++record.entry.uses;
  ++(entry.tier == CacheTier::built ? record.metrics.builds : record.metrics.loads);
  record.metrics.spent += entry.build_time;
  record.entry.took = std::max(record.entry.took, entry.build_time);
  return &record;
}

std::vector<UseRecord> UseHistory::all(const Table& table) const {
  std::map<const UseRecord*, std::pair<std::uint64_t, Duration>> unsettled;
  table.each([&](const Entry& entry, bool) {
    if (!entry.record) return;
    auto& [uses, saved] = unsettled[entry.record];
    uses += entry.hits;
    saved += entry.build_time * entry.hits;
  });
  std::vector<UseRecord> all;
  for (const auto& [name, record] : records_) {
    all.push_back(record);
    if (const auto more = unsettled.find(&record); more != unsettled.end()) {
      all.back().entry.uses += more->second.first;
      all.back().metrics.saved += more->second.second;
    }
    all.back().metrics.uses = all.back().entry.uses;
  }
  std::sort(all.begin(), all.end(), [](const UseRecord& a, const UseRecord& b) { return a.order < b.order; });
  return all;
}

Instant Absence::expiry() const noexcept { return at + failure_lifetime; }

const Absence* Absences::find(const Key& key) const {
  const auto found = absences_.find(key);
  return found == absences_.end() ? nullptr : &found->second;
}

void Absences::add(const Key& key, Removal why, std::optional<Error> failure, Instant now) {
  if (absences_.size() >= most_absences)
    absences_.erase(std::min_element(absences_.begin(), absences_.end(), [&](const auto& a, const auto& b) {
      return std::pair(a.second.is_believed(now), a.second.order) <
             std::pair(b.second.is_believed(now), b.second.order);
    }));
  absences_.insert_or_assign(key, Absence{why, std::move(failure), now, added_++});
}

void Absences::forget_failures() {
  std::erase_if(absences_, [](const auto& absence) { return absence.second.failure.has_value(); });
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
