#pragma once
/// The ShaderCache: builds each kernel once per device and keeps the executables within bounds.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/cache/kernel_handle.hpp>
#include <wye/cache/manifest.hpp>
#include <wye/cache/prewarm.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {

namespace device {
class ExecutableProvider;
}

/// Selects the entry to evict when the cache is full.
enum class Eviction : std::uint8_t {
  lru,  ///< the least recently used
  slru,  ///< segmented: entries used once before entries used again, which get up to 80 % of the room. Choose it for
  ///< a host that loops over more kernels than fit: `lru` then never hits. It is worse if kernels change from
  ///< phase to phase: it hits 65 % of our workloads' requests in half the room, `lru` 94 %
  ///< (bench/eviction_bench.cpp).
};

/// Describes one build or load of a kernel. Host functions cause no event: they need no build.
struct BuildEvent {
  std::string_view kernel;
  std::string_view device;           ///< "vulkan:0"
  CacheTier tier = CacheTier::none;  ///< built, disk or bundle; none if it failed
  Duration took{};
  Bytes bytes = {};              ///< of the executable
  double hit_rate = 0;           ///< `CacheMetrics::hit_rate` at the time of the event
  const Error* error = nullptr;  ///< null if it succeeded
};
/// Receives events on the thread that built, after other threads can find the result. No lock is held. Exceptions are
/// dropped. The function may use the cache but must not destroy its last copy.
using BuildSink = std::function<void(const BuildEvent&)>;

/// Zero bytes or zero kernels keep nothing longer than it is used.
struct CacheOptions {
  std::string directory = {};          ///< of artefacts shared by processes; empty: memory only
  Bytes memory = Bytes{256ull << 20};  ///< of live executables
  std::uint32_t kernels = 1000;        ///< live executables
  Eviction eviction = Eviction::lru;   ///< in memory
  LogSink log = {};
  const Clock* clock = nullptr;           ///< null: the steady clock
  Bytes disk = Bytes{1ull << 30};         ///< of files in the directory; zero stores nothing
  std::uint32_t disk_kernels = 100'000;   ///< files in the directory
  std::vector<std::string> bundles = {};  ///< files of `wyec bundle`, searched before the directory
  BuildSink on_build = {};
  bool durable =
      false;  ///< waits for the disk, so that files survive a power cut; otherwise damage is detected and
              ///< the kernel built again
  /// Initializes the GLSL compiler on a thread of the cache: its first compile takes 70 ms longer than later ones. Set
  /// it if the host will compile; a restarted host usually finds its kernels stored.
  bool warm_compilers = false;
};

/// Counts since the cache was opened, all read at one moment.
struct CacheMetrics {
  std::uint32_t kernels = 0;    ///< live executables
  Bytes bytes;                  ///< of the live executables
  std::uint64_t hits = 0;       ///< found in memory
  std::uint64_t disk_hits = 0;  ///< artefact found on disk
  std::uint64_t misses = 0;     ///< built
  std::uint64_t joined = 0;     ///< waited for a build in flight
  std::uint64_t failures = 0;   ///< builds that failed
  std::uint64_t evictions = 0;  ///< to make room, here or on the device
  std::uint64_t corrupt = 0;    ///< damaged files that were removed
  Duration build_time{};
  std::uint64_t misses_first = 0;         ///< of `misses`: the history has no earlier build
  std::uint64_t misses_evicted = 0;       ///< of `misses`: built before and removed
  std::uint64_t misses_corrupt = 0;       ///< of `misses`: the stored artefact was damaged
  std::uint64_t failure_hits = 0;         ///< answered with an earlier failure
  std::uint64_t joined_processes = 0;     ///< waited for a build in another process
  std::uint64_t evictions_reclaimed = 0;  ///< of `evictions`: the device needed the memory
  std::uint64_t cleared = 0;              ///< removed by `clear`
  std::uint64_t lost = 0;                 ///< removed because the device was lost
  std::uint64_t disk_evictions =
      0;                           ///< files that this cache removed to keep the directory within its bounds
  Duration saved{};                ///< for each hit, the time of the build or load that it avoided
  std::uint64_t deaths = 0;        ///< builds that had ended an earlier process
  std::uint64_t driver_loads = 0;  ///< devices whose driver received its code of an earlier process
  std::uint64_t bundle_hits = 0;   ///< artefact found in a bundle

  /// Returns the fraction of requests that found a built kernel, 0 to 1; 0 before the first request.
  double hit_rate() const noexcept {
    const std::uint64_t found = hits + disk_hits + bundle_hits + joined, asked = found + misses + failures;
    return asked == 0 ? 0.0 : static_cast<double>(found) / static_cast<double>(asked);
  }
};

/// The cost of one kernel on one device since the cache was opened.
struct KernelMetrics {
  std::string kernel;
  std::string device;        ///< "vulkan:0"
  std::uint64_t uses = 0;    ///< requests
  std::uint64_t builds = 0;  ///< of `uses`
  std::uint64_t loads = 0;   ///< of `uses`: from disk or a bundle
  Duration spent{};          ///< on builds and loads
  Duration saved{};          ///< by the other uses; see `CacheMetrics::saved`
  friend bool operator==(const KernelMetrics&, const KernelMetrics&) = default;
};

/// Builds each kernel once per device, also among processes that share a directory, and keeps the executables within
/// bounds, evicting the least recently used. Copies share one cache.
/// Threads: thread-safe. A build blocks only callers that need the same kernel. The end of the last copy waits for builds
///          that continued after a deadline.
class WYE_API ShaderCache {
 public:
  /// Errors: invalid_argument; io (the directory cannot be created, or other users can write to it); of a bundle:
  ///         not_found, corrupt, unsupported, io.
  static Result<ShaderCache> open(CacheOptions options = {}, Version header = header_version);

  /// Returns the executable of `kernel` on `device`; builds it if there is none. An entry in use is never evicted.
  /// A failure of the compiler or device is returned again for ten minutes, or until `clear`. With a directory, a kernel
  /// whose build ended two processes in a row fails in all of them: see `CacheMetrics::deaths`.
  /// If `deadline` passes first, the build continues, and later calls use its result.
  /// Errors: compile_failed, unsupported, invalid_argument, out_of_memory, device_lost, timed_out, closed.
  /// Cost:   of a hit: about a mutex around a map (bench/cache_bench.cpp). Keep the result, or a `handle`.
  Result<Executable> find_or_build(const AnyKernel& kernel, const Device& device, Deadline deadline = {});

  /// The same for a description, in a host that keeps texts rather than kernels. A kernel is made once per description;
  /// descriptions are compared byte for byte. Sources that include from directories or by a callback, or that come from
  /// files, are read each time. Host functions are equal only in copies of one source.
  /// The cache keeps the last 256 descriptions, up to 16 MiB, until `clear`.
  /// Errors: also those of `AnyKernel::make`.
  /// Cost:   of a hit: about 100 ns for 4 KiB of text, without making the description (bench/cache_bench.cpp).
  Result<Executable> find_or_build(const KernelDescription& description, const Device& device,
                                   Deadline deadline = {});

  /// Returns a handle of `kernel` on `device`, for one thread that uses it repeatedly. Builds nothing yet.
  /// Errors: invalid_argument (no device), out_of_memory.
  Result<KernelHandle> handle(const AnyKernel& kernel, const Device& device);

  /// Builds `kernels` on `devices` in the background, in this order, until the cache is full: it evicts nothing. Drivers
  /// generate all code now, including code that they would generate at the first dispatch.
  /// Errors: unavailable (no thread can be started), out_of_memory.
  Result<Prewarm> prewarm(const std::vector<AnyKernel>& kernels, const std::vector<Device>& devices);

  /// The same for those of `kernels` and `devices` that `manifest` names, in its order. An entry applies to every device
  /// of its backend. Entries whose kernel has changed are skipped and counted.
  Result<Prewarm> prewarm(const Manifest& manifest, const std::vector<AnyKernel>& kernels,
                          const std::vector<Device>& devices);
  /// Returns the first 10,000 kernels that were used and went through a compiler or driver.
  Manifest manifest() const;

  CacheMetrics metrics() const;
  /// The same per kernel and device, for the entries of `manifest` and in its order.
  std::vector<KernelMetrics> kernel_metrics() const;
  /// Returns the labels of the live executables ("scale@vulkan:0"), the last to be evicted first: with `Eviction::lru` the
  /// most recently used first.
  std::vector<std::string> contents() const;
  /// Returns a sentence about `kernel` on `device`: ready, building, failed, removed and why, stored.
  /// Cost: may read a file.
  std::string explain(const AnyKernel& kernel, const Device& device) const;
  /// Removes every idle executable and forgets every failure, including builds that ended a process. Stored files stay.
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
