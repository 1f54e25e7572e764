// Metrics and explanations of the cache.
#include <utility>

#include "base/text.hpp"
#include "cache/cache.hpp"

namespace wye::inline v0::cache {

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

std::vector<std::string> Cache::contents() const {
  const auto lock = freeze();
  return table_.contents();
}

std::string Cache::explain(const device::Program& asked, const device::DeviceBase& device) const {
  const device::Program& program = asked.current();
  const std::string name = base::text("Kernel '{}'", program.name()), &id = device.info().id;
  if (const Error* lost = device.lost()) return lost->sentence();
  const auto digest = program.key(device);
  if (!digest) return digest.error().sentence();
  const Key key{*digest, device.ref().generation};
  std::string known;
  {
    const auto lock = freeze();
    const Instant now = clock_.now();
    if (const auto entry = table_.entry_of(key); entry && !entry->alive.expired())
      return base::text("{} is ready on '{}': {} in {}, and found {} times since.{}", name, id,
                        entry->tier == CacheTier::disk || entry->tier == CacheTier::bundle ? "loaded"
                        : entry->tier == CacheTier::built                                  ? "built"
                                                                                           : "made ready",
                        in_words(entry->build_time), entry->hits,
                        entry->kept ? "" : " There is no room for it: it ends with its last user.");
    if (const auto build = builds_.find(key); build != builds_.end())
      return base::text("{} has been building for '{}' for {}; {} more wait for it.", name, id,
                        in_words(now - build->second->began), build->second->waiting.load());
    if (const Absence* absence = table_.find_absence(key)) {
      const std::string ago = in_words(now - absence->at);
      if (absence->failure)
        return base::text("{} could not be built for '{}' {} ago and {}: {}", name, id, ago,
                          absence->is_believed(now)
                              ? base::text("is not tried again for {}", in_words(absence->expiry() - now))
                              : "is tried again at its next use",
                          absence->failure->sentence());
      known = absence->why == Removal::cleared
                  ? base::text("{} was cleared from '{}' {} ago", name, id, ago)
                  : base::text("{} was evicted from '{}' {} ago {}", name, id, ago,
                               absence->why == Removal::reclaimed ? "because the device needed memory"
                                                                  : "to make room");
    }
  }
  if (known.empty())
    known = base::text("{} is not ready on '{}', and is not remembered to have been", name, id);
  if (!program.storable(device)) return known + "; it needs no compiler.";
  for (const Bundle& bundle : bundles_)
    if (bundle.find(*digest).artefact)
      return base::text("{}; its artefact is in the bundle '{}'.", known, bundle.path());
  if (!store_) return known + "; nothing is stored between processes.";
  const Deaths deaths = store_->deaths(build_name(*digest, device));
  if (deaths.crash)
    known += base::text("; making it ready crashed a process by {}", deaths.crash->text());
  else if (deaths.interrupted != 0)
    known += base::text("; {} process{} ended while making it ready", deaths.interrupted,
                        deaths.interrupted == 1 ? "" : "es");
  return known + (store_->holds(*digest) ? "; its artefact is stored." : "; its artefact is not stored.");
}

Manifest Cache::manifest() const {
  const auto lock = freeze();
  return table_.history().manifest();
}

std::vector<KernelMetrics> Cache::kernel_metrics() const {
  const auto lock = freeze();
  return table_.history().metrics();
}

CacheMetrics Cache::metrics_locked() const {
  CacheMetrics metrics = table_.metrics();
  if (directory_) metrics.disk_evictions = directory_->displaced();
  if (drivers_) {
    const DriverTier::Counts counts = drivers_->counts();
    metrics.driver_loads = counts.loaded;
    metrics.corrupt += counts.corrupt;
  }
  return metrics;
}

}  // namespace wye::cache
