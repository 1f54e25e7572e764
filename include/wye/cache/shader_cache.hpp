#pragma once
/// The ShaderCache: kernels made ready once per device, kept within bounds.
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

/// Which entry goes when there is no room.
enum class Eviction : std::uint8_t {
  lru,  ///< the one used longest ago
  slru,  ///< segmented: one that was used only once, before those used again, which have up to 80 % of the room.
         ///< For hosts that pass through more kernels than there is room for, again and again: with `lru`
         ///< such a loop finds nothing. Worse where kernels change from phase to phase: `lru` finds 94 % and
         ///< this one 65 % of our own workloads' requests in half the room (bench/eviction_bench.cpp).
};

/// A kernel that was made ready, or could not be. What host functions take is not told: there is nothing to build.
struct BuildEvent {
  std::string_view kernel;
  std::string_view device;           ///< "vulkan:0"
  CacheTier tier = CacheTier::none;  ///< built, disk or bundle; none where it failed
  Duration took{};
  Bytes bytes = {};              ///< of the executable
  double hit_rate = 0;           ///< `CacheMetrics::hit_rate` now
  const Error* error = nullptr;  ///< why it failed; null where it did not
};
/// Called on the thread that has built, when others can find what it made; no lock is held. What it throws is dropped. It
/// may use the cache, but not be the one to end it.
using BuildSink = std::function<void(const BuildEvent&)>;

/// Every member has a default; zero bytes or zero kernels mean that nothing is kept longer than it is used.
struct CacheOptions {
  std::string directory = {};          ///< where artefacts are kept between processes; empty: in memory only
  Bytes memory = Bytes{256ull << 20};  ///< of live executables
  std::uint32_t kernels = 1000;        ///< live executables
  Eviction eviction = Eviction::lru;   ///< in memory
  LogSink log = {};
  const Clock* clock = nullptr;           ///< null: the steady clock
  Bytes disk = Bytes{1ull << 30};         ///< of files in the directory; zero: nothing is stored
  std::uint32_t disk_kernels = 100'000;   ///< files in the directory
  std::vector<std::string> bundles = {};  ///< files of `wyec bundle`, looked through before the directory
  BuildSink on_build = {};
  bool durable =
      false;  ///< files outlast a power cut, and who stores one waits for the disk; else one that such a
              ///< cut left damaged is seen to be, and built again
  /// The GLSL compiler, whose first compile takes 70 ms more than later ones, gets ready on a thread of the cache's while the
  /// host goes on. For hosts that will compile: one that starts again finds its kernels made, and would pay for nothing.
  bool warm_compilers = false;
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
  std::uint64_t evictions = 0;  ///< dropped for want of room, here or on their device
  std::uint64_t corrupt = 0;    ///< stored files that were not what was stored, and were removed
  Duration build_time{};
  std::uint64_t misses_first = 0;         ///< of `misses`: not had before, as far as is remembered
  std::uint64_t misses_evicted = 0;       ///< of `misses`: had before and dropped
  std::uint64_t misses_corrupt = 0;       ///< of `misses`: what was stored was damaged
  std::uint64_t failure_hits = 0;         ///< answered with the failure of an earlier build
  std::uint64_t joined_processes = 0;     ///< waited for a build in another process
  std::uint64_t evictions_reclaimed = 0;  ///< of `evictions`: their device needed the memory
  std::uint64_t cleared = 0;              ///< dropped by `clear`
  std::uint64_t lost = 0;                 ///< dropped with their device
  std::uint64_t disk_evictions = 0;       ///< files this cache removed to keep the directory within bounds
  Duration saved{};  ///< what hits would have cost, had each been built or loaded as the one it found was
  std::uint64_t deaths = 0;        ///< builds that were seen to have ended their process before
  std::uint64_t driver_loads = 0;  ///< devices whose driver began with what it made in an earlier process
  std::uint64_t bundle_hits = 0;   ///< their artefact found in a bundle

  /// The part of what was asked for that somebody had built before: 0 to 1, and 0 before anything was.
  double hit_rate() const noexcept {
    const std::uint64_t found = hits + disk_hits + bundle_hits + joined, asked = found + misses + failures;
    return asked == 0 ? 0.0 : static_cast<double>(found) / static_cast<double>(asked);
  }
};

/// What one kernel has cost on one device so far, and what keeping it has saved.
struct KernelMetrics {
  std::string kernel;
  std::string device;        ///< "vulkan:0"
  std::uint64_t uses = 0;    ///< how often it was asked for
  std::uint64_t builds = 0;  ///< how often it was built
  std::uint64_t loads = 0;   ///< how often its artefact was found on disk or in a bundle
  Duration spent{};          ///< on these
  Duration saved{};          ///< what the other uses would have cost: see `CacheMetrics::saved`
  friend bool operator==(const KernelMetrics&, const KernelMetrics&) = default;
};

/// Executables per device and kernel, bounded, least recently used first out, none built twice at once or
/// in a row, nor by two processes that share a directory. Copies share one cache.
/// Threads: thread-safe. No lock is held while a kernel compiles but its own; others who want the same one
///          wait for it. The last copy's end waits for builds that went on after a deadline.
class WYE_API ShaderCache {
 public:
  /// Errors: invalid_argument; io (the directory can't be made, or others can write to it); those of a bundle: not_found,
  ///         corrupt, unsupported, io.
  static Result<ShaderCache> open(CacheOptions options = {}, Version header = header_version);

  /// The executable of `kernel` on `device`: the one there is, or a new one. An entry that somebody holds
  /// is never evicted. What a compiler or device refused is refused again without being asked for ten
  /// minutes, or until `clear`. Where there is a directory, what ended two processes in a row while it was built
  /// is refused to all of them until the kernel, its compiler or the driver changes, or until `clear`.
  /// Where `deadline` passes first, the build goes on, for who asks next.
  /// Errors: compile_failed, unsupported, invalid_argument, out_of_memory, device_lost, timed_out, closed.
  /// Cost:   where it is ready, less than two copies of what it returns (cache_bench): keep that, or a `handle`.
  Result<Executable> find_or_build(const AnyKernel& kernel, const Device& device, Deadline deadline = {});

  /// The same for what a kernel is made of, by a host that has the text of its kernels and keeps no kernels: one that says
  /// the same is made once, and found again by comparing. Sources that include from directories or by a callback, or that
  /// were read from files, are read each time; a host function is the same where the source is a copy.
  /// The last 256 descriptions of up to 16 MiB are kept, up to `clear`.
  /// Errors: those of `AnyKernel::make` too.
  /// Cost:   where it is ready, some 100 ns for 4 KiB of text, where the description is kept; that of making one anew comes on top
  ///         (bench/cache_bench.cpp).
  Result<Executable> find_or_build(const KernelDescription& description, const Device& device,
                                   Deadline deadline = {});

  /// `kernel` on `device` for one thread that asks for it again and again. Nothing is built yet.
  /// Errors: invalid_argument (no device), out_of_memory.
  Result<KernelHandle> handle(const AnyKernel& kernel, const Device& device);

  /// Makes `kernels` ready on `devices` in the background, in this order, as far as there is room: nothing is
  /// evicted for it. Drivers make all of their code, also those that leave it for the first dispatch. Whoever asks for one meanwhile waits for the background.
  /// Errors: unavailable (no thread can be started), out_of_memory.
  Result<Prewarm> prewarm(const std::vector<AnyKernel>& kernels, const std::vector<Device>& devices);

  /// The same for those of `kernels` and `devices` that `manifest` names, in its order. An entry is for every device of
  /// its backend; one whose kernel has changed since is left out, and counted.
  Result<Prewarm> prewarm(const Manifest& manifest, const std::vector<AnyKernel>& kernels,
                          const std::vector<Device>& devices);
  /// The kernels that were asked for so far and went through a compiler or driver: the first 10,000.
  Manifest manifest() const;

  CacheMetrics metrics() const;
  /// The same per kernel and device, of those that `manifest` has, in its order.
  std::vector<KernelMetrics> kernel_metrics() const;
  /// Names of the live kernels, the last to be evicted first: "scale@vulkan:0". With `Eviction::lru` that is
  /// most recently used first.
  std::vector<std::string> contents() const;
  /// What is known of `kernel` on `device`, in a sentence: ready, being built, failed, dropped and why, stored.
  /// Cost: may read a file.
  std::string explain(const AnyKernel& kernel, const Device& device) const;
  /// Drops every executable that nobody holds, and every failure, also those that ended a process. What is stored
  /// stays.
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
