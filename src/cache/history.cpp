#include "cache/history.hpp"

#include <algorithm>
#include <cstring>

#include "device/device.hpp"

namespace wye::inline v0::cache {

namespace {

using namespace std::chrono_literals;

/// The key covers everything that goes into a build, except the driver.
constexpr Duration failure_lifetime = 10min;
constexpr std::size_t most_absences = 512;
constexpr std::size_t most_records = 10'000;

}  // namespace

std::size_t KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t bits = 0;  // any part of a digest is uniform
  std::memcpy(&bits, key.digest.bytes.data(), sizeof(bits));
  return static_cast<std::size_t>(bits ^ key.device * 0x9E3779B97F4A7C15u);
}

KernelRecord* KernelHistory::add_build(const Digest& key, const device::ExecutableBase& executable,
                                       CacheTier tier, Duration took) {
  const AdapterInfo& device = executable.device()->info();
  const std::string& kernel = executable.artefact().kernel;
  const std::pair name(key, device.id);
  if (records_.size() >= most_records && !records_.contains(name)) return nullptr;
  KernelRecord& record = records_
                             .try_emplace(name, KernelRecord{{key, kernel, device.backend, device.name},
                                                             {kernel, device.id},
                                                             records_.size()})
                             .first->second;
  ++record.metrics.uses;
  ++(tier == CacheTier::built ? record.metrics.builds : record.metrics.loads);
  record.metrics.spent += took;
  record.entry.took = std::max(record.entry.took, took);
  return &record;
}

std::vector<const KernelRecord*> KernelHistory::in_order() const {
  std::vector<const KernelRecord*> all;
  for (const auto& [name, record] : records_) all.push_back(&record);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->order < b->order; });
  return all;
}

Manifest KernelHistory::manifest() const {
  Manifest manifest;
  for (const KernelRecord* const record : in_order()) {
    manifest.entries.push_back(record->entry);
    manifest.entries.back().uses = record->metrics.uses;
  }
  return manifest;
}

std::vector<KernelMetrics> KernelHistory::metrics() const {
  std::vector<KernelMetrics> all;
  for (const KernelRecord* const record : in_order()) all.push_back(record->metrics);
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

}  // namespace wye::cache
