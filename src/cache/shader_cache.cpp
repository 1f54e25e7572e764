#include <wye/cache/shader_cache.hpp>

#include <map>
#include <set>
#include <utility>

#include "base/internals.hpp"
#include "base/logger.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "base/with_memory.hpp"
#include "cache/cache.hpp"
#include "cache/handle_state.hpp"
#include "cache/prewarming.hpp"
#include "device/device.hpp"

namespace wye::inline v0 {

namespace {

Error no_device() { return Error(Errc::invalid_argument, "The device of the kernel is empty."); }

template <class Kernel>
Result<Executable> provided(cache::Cache& cache, const Kernel& kernel, const Device& device,
                            Deadline deadline) {
  if (!device) return no_device();
  return base::with_memory("find or build a kernel", [&]() -> Result<Executable> {
    auto provided = cache.provide(kernel, base::state_of(device), deadline.at(cache.clock()));
    if (!provided) return std::move(provided).error();
    return std::move(provided->executable);
  });
}

Result<Prewarm> started(const ShaderCache& cache, std::vector<cache::Prewarming::Item> items,
                        std::size_t unmatched) {
  if (const Error* inherited = cache::of(cache).origin().error()) return *inherited;
  auto prewarming = cache::Prewarming::start(cache::share(cache), std::move(items), unmatched);
  if (!prewarming) return std::move(prewarming).error();
  return detail::Internals::make<Prewarm>(std::move(*prewarming));
}

/// Calls `f` with each program of `kernels`, variants too, and each device that takes it.
template <class F>
void each_usable(const std::vector<AnyKernel>& kernels, const std::vector<Device>& devices, F f) {
  for (const AnyKernel& kernel : kernels)
    for (std::size_t i = 0; i < base::programs_of(kernel).size(); ++i)
      for (const Device& device : devices)
        if (device && base::programs_of(kernel)[i]->current().runs_on(*base::state_of(device)))
          f(base::programs_of(kernel)[i], base::state_of(device));
}

}  // namespace

Result<ShaderCache> ShaderCache::open(CacheOptions options, Headers headers) {
  if (auto fits = base::check_headers<CacheOptions>(headers); !fits) return std::move(fits).error();
  return cache::open(std::move(options), nullptr);
}

Result<ShaderCache> cache::open(CacheOptions options, const std::shared_ptr<base::Journal>& journal) {
  if (options.eviction != Eviction::lru && options.eviction != Eviction::slru)
    return Error(Errc::invalid_argument, "The eviction policy is unknown to this build (lru, slru).");
  if (options.store && !options.directory.empty())
    return Error(Errc::invalid_argument,
                 base::text("A cache cannot have both a directory ('{}') and a store.", options.directory));
  return base::with_memory("open a cache", [&]() -> Result<ShaderCache> {
    const base::Logger log(options.log);
    if (!options.require_directory && !options.store && options.directory.empty())
      log.write(LogLevel::warning, "cache", "Kernels are not stored: there is no cache directory.");
    auto opened = cache::Cache::open(options, journal);
    if (!opened && opened.error() == Errc::io && !options.require_directory) {
      log.write(LogLevel::warning, "cache",
                base::text("Kernels are not stored: {}", opened.error().sentence()));
      options.directory.clear();
      opened = cache::Cache::open(options, journal);
    }
    if (!opened) return std::move(opened).error();
    return detail::Internals::make<ShaderCache>(std::move(*opened));
  });
}

Result<Executable> ShaderCache::find_or_build(const AnyKernel& kernel, const Device& device,
                                              Deadline deadline) {
  cache::Cache& cache = cache::of(*this);
  if (device && !base::state_of(device)->lost())  // the shortest way to a hit: cache_bench
    if (auto ready = cache.find_ready(*base::program_of(kernel), *base::state_of(device)))
      return Executable(std::move(ready));
  return provided(cache, base::program_of(kernel), device, deadline);
}

Result<Executable> ShaderCache::find_or_build(const detail::KernelDescription& description,
                                              const Device& device, Deadline deadline) {
  return provided(cache::of(*this), description, device, deadline);
}

Result<KernelHandle> ShaderCache::handle(const AnyKernel& kernel, const Device& device) {
  if (!device) return no_device();
  if (const Error* inherited = cache::of(*this).origin().error()) return *inherited;
  return base::with_memory("make the handle of a kernel", [&]() -> Result<KernelHandle> {
    return KernelHandle(std::make_unique<cache::HandleState>(cache::share(*this), base::program_of(kernel),
                                                             base::state_of(device)));
  });
}

Result<Prewarm> ShaderCache::prewarm(const std::vector<AnyKernel>& kernels,
                                     const std::vector<Device>& devices) {
  return base::with_memory("prewarm kernels", [&] {
    std::vector<cache::Prewarming::Item> items;
    each_usable(kernels, devices, [&](const auto& program, const auto& device) {
      items.push_back({program, device});
    });
    return started(*this, std::move(items), 0);
  });
}

Result<Prewarm> ShaderCache::prewarm(const Manifest& manifest, const std::vector<AnyKernel>& kernels,
                                     const std::vector<Device>& devices) {
  return base::with_memory("prewarm kernels", [&] {
    std::multimap<std::pair<Digest, std::string>, cache::Prewarming::Item> known;
    each_usable(kernels, devices, [&](const auto& program, const auto& device) {
      if (const auto key = program->current().key(*device))
        known.insert({{*key, device->info().backend}, {program, device}});
    });
    std::vector<cache::Prewarming::Item> items;
    std::set<std::pair<Digest, std::string>> seen;  // devices of one backend have an entry each
    std::size_t unmatched = 0;
    for (const ManifestEntry& entry : manifest.entries) {
      const std::pair<Digest, std::string> name(entry.key, entry.backend);
      const auto [first, last] = known.equal_range(name);
      unmatched += first == last;
      if (!seen.insert(name).second) continue;
      for (auto item = first; item != last; ++item) items.push_back(item->second);
    }
    return started(*this, std::move(items), unmatched);
  });
}

Manifest ShaderCache::manifest() const {
  const cache::Cache& cache = cache::of(*this);
  return cache.origin().is_inherited() ? Manifest() : cache.manifest();
}

CacheMetrics ShaderCache::metrics() const {
  const cache::Cache& cache = cache::of(*this);
  if (cache.origin().is_inherited()) return {};
  const auto lock = cache.freeze();
  return cache.metrics_locked();
}

std::vector<KernelMetrics> ShaderCache::kernel_metrics() const {
  const cache::Cache& cache = cache::of(*this);
  return cache.origin().is_inherited() ? std::vector<KernelMetrics>() : cache.kernel_metrics();
}
std::vector<std::string> ShaderCache::contents() const {
  const cache::Cache& cache = cache::of(*this);
  return cache.origin().is_inherited() ? std::vector<std::string>() : cache.contents();
}
std::string ShaderCache::explain(const AnyKernel& kernel, const Device& device) const {
  if (!device) return "The device is empty.";
  const cache::Cache& cache = cache::of(*this);
  if (const Error* inherited = cache.origin().error()) return inherited->sentence();
  return cache.explain(*base::program_of(kernel), *base::state_of(device));
}
void ShaderCache::clear() { cache::of(*this).clear(); }

}  // namespace wye
