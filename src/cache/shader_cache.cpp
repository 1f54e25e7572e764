#include <wye/cache/shader_cache.hpp>

#include <new>

#include "base/version.hpp"
#include "cache/cache.hpp"

namespace wye {
inline namespace v0 {

namespace {

cache::Cache& cache_of(const std::shared_ptr<device::ExecutableProvider>& provider) {
  return static_cast<cache::Cache&>(*provider);
}

}  // namespace

Result<ShaderCache> ShaderCache::open(CacheOptions options, Version header) {
  if (auto fits = base::check_header(header); !fits) return std::move(fits).error();
  if (options.eviction != Eviction::lru)
    return Error(Errc::invalid_argument, "The eviction policy is none of those this build knows (lru).");
  try {
    auto opened = cache::Cache::open(options);
    if (!opened) return std::move(opened).error();
    return ShaderCache(std::move(*opened));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to open a cache.");
  }
}

Result<Executable> ShaderCache::find_or_build(const AnyKernel& kernel, const Device& device,
                                              Deadline deadline) {
  if (!device) return Error(Errc::invalid_argument, "A kernel cannot be built for no device.");
  try {
    auto provided =
        provider_->provide(kernel.program(), device.base(), deadline.at(cache_of(provider_).clock()));
    if (!provided) return std::move(provided).error();
    return std::move(provided->executable);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to find or build a kernel.");
  }
}

CacheMetrics ShaderCache::metrics() const {
  const cache::Cache& cache = cache_of(provider_);
  const auto still = cache.freeze();
  return cache.metrics_locked();
}

std::vector<std::string> ShaderCache::contents() const { return cache_of(provider_).contents(); }
void ShaderCache::clear() { cache_of(provider_).clear(); }

}  // namespace v0
}  // namespace wye
