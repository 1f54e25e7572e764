#pragma once
/// The ShaderCache: kernels made ready once per device, kept within bounds.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace wye {
inline namespace v0 {

namespace device {
class ExecutableProvider;
}

/// Which entry goes when there is no room.
enum class Eviction : std::uint8_t {
  lru,  ///< the one used longest ago
};

/// Every member has a default; zero bytes or zero kernels mean that nothing is kept longer than it is used.
struct CacheOptions {
  std::string directory = {};          ///< where artefacts are kept between processes; empty: in memory only
  Bytes memory = Bytes{256ull << 20};  ///< of live executables
  std::uint32_t kernels = 1000;        ///< live executables
  Eviction eviction = Eviction::lru;
  LogSink log = {};
  const Clock* clock = nullptr;  ///< null: the steady clock
};

/// What the cache has done so far, at one moment.
struct CacheMetrics {
  std::uint32_t kernels = 0;    ///< live executables
  Bytes bytes;                  ///< they take
  std::uint64_t hits = 0;       ///< found ready in memory
  std::uint64_t disk_hits = 0;  ///< their artefact found on disk
  std::uint64_t misses = 0;     ///< built
  std::uint64_t joined = 0;     ///< waited for a build that was under way
  std::uint64_t failures = 0;   ///< builds that failed
  std::uint64_t evictions = 0;
  std::uint64_t corrupt = 0;  ///< stored artefacts that were not what was stored, and were removed
  Duration build_time{};
};

/// Executables per device and kernel, bounded, least recently used first out, none built twice at once or
/// in a row. Copies share one cache.
/// Threads: thread-safe. No lock is held while a kernel compiles; others who want the same one wait for it.
class WYE_API ShaderCache {
 public:
  /// Errors: invalid_argument; io (the directory can't be made, or others can write to it).
  static Result<ShaderCache> open(CacheOptions options = {}, Version header = header_version);

  /// The executable of `kernel` on `device`: the one there is, or a new one. An entry that somebody holds
  /// is never evicted.
  /// Errors: compile_failed, unsupported, invalid_argument, out_of_memory, device_lost, timed_out, closed.
  Result<Executable> find_or_build(const AnyKernel& kernel, const Device& device, Deadline deadline = {});

  CacheMetrics metrics() const;
  /// Names of the live kernels, most recently used first: "scale@vulkan:0".
  std::vector<std::string> contents() const;
  /// Drops every executable that nobody holds.
  void clear();

  const std::shared_ptr<device::ExecutableProvider>& provider() const noexcept { return provider_; }
  /// A scheduler takes its executables from a cache.
  operator const std::shared_ptr<device::ExecutableProvider>&() const noexcept { return provider_; }

 private:
  explicit ShaderCache(std::shared_ptr<device::ExecutableProvider> provider)
      : provider_(std::move(provider)) {}
  std::shared_ptr<device::ExecutableProvider> provider_;
};

}  // namespace v0
}  // namespace wye
