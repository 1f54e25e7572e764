#pragma once
/// The ShaderCache: builds each kernel once per device and keeps the executables within bounds.
#include <wye/base/blob_store.hpp>
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/detail/id.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>
#include <wye/kernel/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0 {

namespace device {
class ExecutableProvider;
}
namespace cache {
class HandleState;
class Prewarming;
}  // namespace cache

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
  Id id = {};                    ///< of this build or load
};
/// Receives events, by the rule of `SwitchSink`, after other threads can find the result.
using BuildSink = std::function<void(const BuildEvent&)>;

/// Options of `ShaderCache::open`. The variables are read by `RuntimeOptions::from_environment`
/// alone. Zero bytes or zero kernels keep nothing longer than it is used.
///
/// | option            | default      | environment        | unit, range                                   |
/// |-------------------|--------------|--------------------|-----------------------------------------------|
/// | directory         | memory only  | WYE_CACHE_DIR      | path; of the variable "none": memory only     |
/// | require_directory | true         | -                  | see below                                     |
/// | memory            | 256 MiB      | WYE_CACHE_MEMORY   | bytes, or with KiB, MiB, GiB                  |
/// | kernels           | 1000         | WYE_CACHED_KERNELS | compiled executables, 0 to 1,000,000          |
/// | eviction          | lru          | -                  | lru, slru                                     |
/// | disk              | 1 GiB        | WYE_CACHE_DISK     | bytes, or with KiB, MiB, GiB                  |
/// | disk_kernels      | 100,000      | -                  | files                                         |
/// | durable           | false        | WYE_CACHE_DURABLE  | 0, 1                                          |
/// | bundles           | none         | -                  | paths of files of `wyec bundle`               |
/// | store             | none         | -                  | a BlobStore of the host                       |
/// | warm_compilers    | false        | WYE_WARM_COMPILERS | 0, 1                                          |
/// | on_build          | none         | -                  | called after each build: see BuildSink        |
/// | log               | none         | -                  | see RuntimeOptions                            |
/// | clock             | steady clock | -                  |                                               |
struct CacheOptions {
  std::string directory = {};  ///< of artefacts and times, which processes share; empty: memory only
  /// false: if there is no directory, or it cannot be used, the cache opens in memory only, with a
  /// warning in the log.
  bool require_directory = true;
  Bytes memory = Bytes{256ull << 20};  ///< limit of the live executables
  std::uint32_t kernels = 1000;        ///< limit of the live executables, without host functions
  Eviction eviction = Eviction::lru;   ///< in memory
  /// Limits the files in the directory; zero stores nothing. Reports of checked GPUs, of 3 KB each,
  /// and times of jobs, of up to 2 MB for each build of a driver, have a limit of their own: 16 MiB.
  Bytes disk = Bytes{1ull << 30};
  std::uint32_t disk_kernels = 100'000;  ///< limit of the files in the directory
  /// Waits for the disk, so that files survive a power cut. Otherwise a damaged file is detected
  /// and its kernel built again.
  bool durable = false;
  std::vector<std::string> bundles = {};  ///< searched before the directory
  std::shared_ptr<BlobStore> store = {};  ///< keeps these instead of a directory, which must be empty
  /// Initializes the GLSL compiler on a thread of the cache: its first compile takes 70 ms longer
  /// than later ones. Set it if the host will compile; a restarted host usually finds its kernels
  /// stored.
  bool warm_compilers = false;
  BuildSink on_build = {};
  LogSink log = {};
  const Clock* clock = nullptr;  ///< null: the steady clock
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
  std::uint64_t deaths = 0;        ///< builds in which an earlier process had ended
  std::uint64_t driver_loads = 0;  ///< devices whose driver received its code of an earlier process
  std::uint64_t bundle_hits = 0;   ///< artefact found in a bundle

  /// Returns the fraction of requests that found a built kernel, 0 to 1; 0 before the first
  /// request.
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

/// One kernel on one device of a run.
struct ManifestEntry {
  Digest key;              ///< of source, options, constants and compiler
  std::string kernel;      ///< name
  std::string backend;     ///< "vulkan"
  std::string device;      ///< the driver's name of it
  std::uint64_t uses = 0;  ///< requests
  Duration took{};         ///< the longest build or load
  friend bool operator==(const ManifestEntry&, const ManifestEntry&) = default;
};

/// The kernels that a run used, to ship with an application. `ShaderCache::manifest` records it;
/// `ShaderCache::prewarm` builds its kernels.
struct Manifest {
  std::vector<ManifestEntry> entries;  ///< in the order of their first use

  /// Errors: not_found, io; unsupported (a newer version); corrupt (truncated, damaged, or not a
  ///         manifest). Each names the path.
  WYE_API static Result<Manifest> read(const std::string& path);
  /// Writes lines of text and their digest, atomically.
  /// Errors: io.
  WYE_API Result<void> write(const std::string& path) const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Builds kernels in the background, one after the other, on one thread of low priority. The
/// destructor starts no further build and waits for the current one.
/// Threads: thread-safe.
class WYE_API Prewarm {
 public:
  /// Counts kernels times devices, except kernels without a source for the device.
  struct Progress {
    std::size_t total = 0;
    std::size_t ready = 0;      ///< built now or before
    std::size_t failed = 0;     ///< `ShaderCache::find_or_build` returns the error
    bool ended = false;         ///< completed, cancelled, or the cache is full
    std::size_t unmatched = 0;  ///< entries of the manifest that match none of the kernels and devices
  };

  Prewarm(Prewarm&&) noexcept;
  Prewarm& operator=(Prewarm&&) noexcept;
  ~Prewarm();

  Progress progress() const;
  /// Starts no further build. Does not wait.
  void cancel();
  /// Waits until it has ended; false if `deadline` passes first.
  bool wait(Deadline deadline = {});

 private:
  friend struct detail::Internals;
  explicit Prewarm(std::unique_ptr<cache::Prewarming> state) noexcept;
  std::unique_ptr<cache::Prewarming> state_;
};

/// A kernel on one device. Repeated use costs a few loads: it takes no lock and copies no shared pointer.
///
///     auto scale = cache.handle(kernel, device);
///     while (...) {
///       auto ready = scale->find_or_build();
///       if (!ready) return ready.error();
///       lease.dispatch(**ready, ...);
///     }
///
/// Threads: one thread at a time; each thread has its own handle.
class WYE_API KernelHandle {
 public:
  KernelHandle(KernelHandle&&) noexcept;
  KernelHandle& operator=(KernelHandle&&) noexcept;
  ~KernelHandle();

  /// Returns the executable that `ShaderCache::find_or_build` would return. Every call is a use,
  /// for metrics and for the order of eviction. The pointer is valid until the next call or the end
  /// of the handle; the executable is not evicted before that.
  /// Errors: those of `ShaderCache::find_or_build`; closed (moved from).
  /// Cost:   about a third of copying an `Executable` (bench/cache_bench.cpp).
  Result<const Executable*> find_or_build(Deadline deadline = {});

 private:
  friend class ShaderCache;
  explicit KernelHandle(std::unique_ptr<cache::HandleState> state);
  std::unique_ptr<cache::HandleState> state_;
};

/// Builds each kernel once per device, also among processes that share a directory, and keeps the
/// executables within bounds, evicting the least recently used. Copies share one cache.
/// Threads: thread-safe. A build blocks only callers that need the same kernel. The end of the last
///          copy waits for builds that continued after a deadline.
class WYE_API ShaderCache {
 public:
  /// Errors: invalid_argument (a directory and a store, an unknown eviction); io (the directory
  ///         cannot be created, or other users can write to it); of a bundle: not_found, corrupt,
  ///         unsupported, io; unavailable (no thread for `on_build`).
  static Result<ShaderCache> open(CacheOptions options = {},
                                  Headers headers = {header_version, sizeof(CacheOptions)});

  /// Returns the executable of `kernel` on `device`; builds it if there is none. An entry in use is
  /// never evicted. A failure of the compiler or device is returned again for ten minutes, or until
  /// `clear`. With a directory, a build in which an earlier process has ended runs in a child process
  /// first (docs/memory-and-lifetime.md). If it crashes there too, it fails in all processes for an
  /// hour: see `CacheMetrics::deaths`. If `deadline` passes first, the build continues, and later
  /// calls use its result.
  /// Errors: compile_failed, unsupported, invalid_argument, out_of_memory, device_lost, timed_out,
  ///         closed.
  /// Cost:   of a hit: about a mutex around a map (bench/cache_bench.cpp). Keep the result, or a
  ///         `handle`.
  Result<Executable> find_or_build(const AnyKernel& kernel, const Device& device, Deadline deadline = {});

  /// The same for a description, in a host that keeps texts rather than kernels. A kernel is made
  /// once per description; descriptions are compared byte for byte. Sources that include from
  /// directories or by a callback, or that come from files, are read each time. Host functions are
  /// equal only in copies of one source. The cache keeps the last 256 descriptions, up to 16 MiB,
  /// until `clear`.
  /// Errors: also those of `AnyKernel::make`.
  /// Cost:   of a hit: about 100 ns for 4 KiB of text, without making the description
  ///         (bench/cache_bench.cpp).
  Result<Executable> find_or_build(const detail::KernelDescription& description, const Device& device,
                                   Deadline deadline = {});

  /// Returns a handle of `kernel` on `device`, for one thread that uses it repeatedly. Builds
  /// nothing yet.
  /// Errors: invalid_argument (no device), out_of_memory.
  Result<KernelHandle> handle(const AnyKernel& kernel, const Device& device);

  /// Builds `kernels` on `devices` in the background, in this order, until the cache is full: it
  /// evicts nothing. Drivers generate all code now, including code that they would generate at the
  /// first dispatch.
  /// Errors: unavailable (no thread can be started), out_of_memory.
  Result<Prewarm> prewarm(const std::vector<AnyKernel>& kernels, const std::vector<Device>& devices);

  /// The same for those of `kernels` and `devices` that `manifest` names, in its order. An entry
  /// applies to every device of its backend. Entries whose kernel has changed are skipped and
  /// counted.
  Result<Prewarm> prewarm(const Manifest& manifest, const std::vector<AnyKernel>& kernels,
                          const std::vector<Device>& devices);
  /// Returns the first 10,000 kernels that were used and went through a compiler or driver.
  Manifest manifest() const;

  CacheMetrics metrics() const;
  /// The same per kernel and device, for the entries of `manifest` and in its order.
  std::vector<KernelMetrics> kernel_metrics() const;
  /// Returns the labels of the live executables ("scale@vulkan:0"), the last to be evicted first:
  /// with `Eviction::lru` the most recently used first.
  std::vector<std::string> contents() const;
  /// Returns a sentence about `kernel` on `device`: ready, building, failed, removed and why,
  /// stored.
  /// Cost: may read a file.
  std::string explain(const AnyKernel& kernel, const Device& device) const;
  /// Removes every idle executable and forgets every failure, including builds that ended a
  /// process. Stored files stay.
  void clear();

 private:
  friend struct detail::Internals;
  explicit ShaderCache(std::shared_ptr<device::ExecutableProvider> state) : state_(std::move(state)) {}
  std::shared_ptr<device::ExecutableProvider> state_;
};

}  // namespace wye
