// What the cache says of itself.
#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "cache/cache.hpp"
#include "cache/hold.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

using namespace std::chrono_literals;

/// "12 ms", "350 us".
std::string in_words(Duration time) {
  if (time < 10ms)
    return base::text("{} us", std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  if (time < 10s)
    return base::text("{} ms", std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
  return base::text("{} s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

}  // namespace

Cache::Frozen Cache::freeze() const { return Frozen(*this); }

std::vector<std::string> Cache::contents() const {
  struct Found {
    std::pair<bool, std::uint64_t> order;
    std::string label;
  };
  std::vector<Found> found;
  {
    const Frozen still = freeze();
    settle();
    for (const auto& [key, entry] : entries_)
      if (!entry.alive.expired())
        found.push_back({{entry.is_protected, entry.tally->used.load()}, entry.label});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.order > b.order; });
  std::vector<std::string> labels;
  for (Found& one : found) labels.push_back(std::move(one.label));
  return labels;
}

std::string Cache::explain(const device::Program& asked, const device::DeviceBase& device) const {
  const device::Program& program = asked.current();
  const std::string name = base::text("Kernel '{}'", program.name()), &id = device.info().id;
  if (const Error* lost = device.lost()) return lost->sentence();
  const auto digest = program.key(device);
  if (!digest) return digest.error().sentence();
  const Key key{*digest, &device};
  std::string known;
  {
    const Frozen still = freeze();
    settle();
    const Instant now = clock_.now();
    if (const auto entry = entries_.find(key); entry != entries_.end() && !entry->second.alive.expired()) {
      const Entry& live = entry->second;
      return base::text("{} is ready on '{}': {} in {}, and found {} times since.{}", name, id,
                        live.tier == CacheTier::disk || live.tier == CacheTier::bundle ? "loaded"
                        : live.tier == CacheTier::built                                ? "built"
                                                                                       : "made ready",
                        in_words(live.took), live.tally->hits.load(),
                        live.kept ? "" : " There is no room for it: it ends with its last user.");
    }
    if (const auto flight = flights_.find(key); flight != flights_.end())
      return base::text("{} has been building for '{}' for {}; {} more wait for it.", name, id,
                        in_words(now - flight->second->began), flight->second->waiting);
    if (const Past* before = past(key)) {
      const std::string ago = in_words(now - before->at);
      switch (before->why) {
        case Gone::failed:
          return base::text("{} could not be built for '{}' {} ago and {}: {}", name, id, ago,
                            now < expiry(*before)
                                ? base::text("is not tried again for {}", in_words(expiry(*before) - now))
                                : "is tried again at its next use",
                            before->failure->sentence());
        case Gone::no_room:
          known = base::text("{} was evicted from '{}' {} ago to make room", name, id, ago);
          break;
        case Gone::reclaimed:
          known =
              base::text("{} was evicted from '{}' {} ago because the device needed memory", name, id, ago);
          break;
        case Gone::cleared: known = base::text("{} was cleared from '{}' {} ago", name, id, ago); break;
        case Gone::lost: break;  // not remembered
      }
    }
  }
  if (known.empty())
    known = base::text("{} is not ready on '{}', and is not remembered to have been", name, id);
  if (!program.storable(device)) return known + "; it needs no compiler.";
  for (const Bundle& bundle : bundles_)
    if (bundle.find(*digest).artefact)
      return base::text("{}; its artefact is in the bundle '{}'.", known, bundle.path());
  if (!store_) return known + "; nothing is stored between processes.";
  if (const unsigned deaths = store_->deaths(build_name(*digest, device)))
    known += base::text("; making it ready ended {} process{}", deaths, deaths == 1 ? "" : "es");
  return known + (store_->holds(*digest) ? "; its artefact is stored." : "; its artefact is not stored.");
}

/// Everything that was used, in the order of first use, with what the entries that live have not told yet.
std::vector<Cache::Use> Cache::uses() const {
  std::vector<Use> used;
  {
    const Frozen still = freeze();
    settle();
    std::map<const Use*, std::pair<std::uint64_t, Duration>> live;
    for (const auto& [key, entry] : entries_) {
      if (!entry.use) continue;
      const std::uint64_t hits = entry.tally->hits.load(std::memory_order_relaxed);
      auto& [uses, saved] = live[entry.use];
      uses += hits;
      saved += entry.took * hits;
    }
    for (const auto& [key, use] : used_) {
      used.push_back(use);
      if (const auto more = live.find(&use); more != live.end()) {
        used.back().entry.uses += more->second.first;
        used.back().metrics.saved += more->second.second;
      }
    }
  }
  std::sort(used.begin(), used.end(), [](const Use& a, const Use& b) { return a.order < b.order; });
  return used;
}

Manifest Cache::manifest() const {
  Manifest manifest;
  for (Use& use : uses()) manifest.entries.push_back(std::move(use.entry));
  return manifest;
}

std::vector<KernelMetrics> Cache::kernel_metrics() const {
  std::vector<KernelMetrics> all;
  for (Use& use : uses()) {
    all.push_back(std::move(use.metrics));
    all.back().uses = use.entry.uses;
  }
  return all;
}

void Cache::settle() const noexcept {
  for (Reader& reader : readers_)
    for (Slot& slot : reader.slots) settle(slot);
  for (Hold* hold : holds_) hold->settle();
}

CacheMetrics Cache::metrics_locked() const {
  CacheMetrics metrics = counted_;
  settle();
  for (const auto& [key, entry] : entries_) {
    const std::uint64_t hits = entry.tally->hits.load(std::memory_order_relaxed);
    metrics.hits += hits;
    metrics.saved += entry.took * hits;
    if (entry.alive.expired()) {
      ++metrics.evictions;
    } else {
      ++metrics.kernels;
      metrics.bytes += entry.bytes;
    }
  }
  if (directory_) metrics.disk_evictions = directory_->displaced();
  if (drivers_) {
    const DriverTier::Counts counts = drivers_->counts();
    metrics.driver_loads = counts.loaded;
    metrics.corrupt += counts.corrupt;
  }
  return metrics;
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
