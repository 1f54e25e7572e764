#pragma once
/// The implementation of ShaderCache.
#include <wye/cache/shader_cache.hpp>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/gate.hpp"
#include "base/id.hpp"
#include "base/journal.hpp"
#include "base/logger.hpp"
#include "base/process.hpp"
#include "base/worker.hpp"
#include "cache/descriptions.hpp"
#include "cache/store/artefact_store.hpp"
#include "cache/store/bundle.hpp"
#include "cache/store/directory_store.hpp"
#include "cache/store/driver_records.hpp"
#include "cache/store/driver_tier.hpp"
#include "cache/table.hpp"
#include "device/provider.hpp"
#include "device/reclaimable.hpp"

namespace wye::inline v0::cache {

class HandleState;

/// Finds executables in a table, or builds them: one build per key among all threads
/// (single-flight), and among all processes that share a store.
///
/// One spin lock guards table and builds. A hit by kernel looks up the program's id and the device:
/// it computes no key. No lock is held during a build, a call of a driver or the store, a callback,
/// or the end of an executable, except the claim on the key between processes. A build that a
/// caller awaits with a deadline runs on its own thread, because compilers cannot be cancelled. If
/// the deadline passes first, the build continues, and later calls use its result.
/// Threads: thread-safe.
class Cache final : public device::ExecutableProvider,
                    public device::Reclaimable,
                    public std::enable_shared_from_this<Cache> {
 public:
  /// Opens a cache. `journal`: null: its own.
  /// Errors: io; those of `Bundle::open`; unavailable (no thread for `on_build`).
  static Result<std::shared_ptr<Cache>> open(const CacheOptions& options,
                                             std::shared_ptr<base::Journal> journal = nullptr);
  Cache(const CacheOptions& options, std::unique_ptr<ArtefactStore> store,
        std::shared_ptr<const DirectoryStore> directory, std::vector<Bundle> bundles,
        std::shared_ptr<base::Journal> journal);  ///< for `open`
  ~Cache() override;

  /// Reports to `observer` each program and device that is not found by its id. Call it before the
  /// first use.
  void observe(std::weak_ptr<device::UseObserver> observer) { observer_ = std::move(observer); }

  /// Returns the executable of `program` if it is kept and was found by this program before;
  /// otherwise null.
  ExecutablePointer find_ready(const device::Program& program, const device::DeviceBase& device);

  Result<void> begin_build(const std::shared_ptr<const device::Program>& program,
                           const std::shared_ptr<device::DeviceBase>& device) override;
  std::optional<Duration> build_cost(const device::Program& program,
                                     const device::DeviceBase& device) const override;
  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until) override;
  Result<device::Provided> make_ready(const std::shared_ptr<const device::Program>& program,
                                      const std::shared_ptr<device::DeviceBase>& device,
                                      Instant until) override;
  bool await_builds(Instant until) override;
  device::DriverRecords* driver_records() noexcept override { return records_ ? &*records_ : nullptr; }
  Result<device::Provided> provide(const KernelDescription& description,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until);
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) override;
  IdleMemory kind() const noexcept override { return IdleMemory::executables; }

  void clear();
  /// Stores the code that drivers made and that is not stored yet.
  void save_driver_code() noexcept;
  /// Whether a further executable would evict another one.
  bool is_full() const;
  /// Labels of the live executables, the last to be evicted first.
  std::vector<std::string> contents() const;
  std::string explain(const device::Program& program, const device::DeviceBase& device) const;
  Manifest manifest() const;
  std::vector<KernelMetrics> kernel_metrics() const;
  const Clock& clock() const noexcept override { return clock_; }
  const std::shared_ptr<base::Journal>& journal() const noexcept { return journal_; }
  /// Returns the store, for records about devices; null without one.
  ArtefactStore* store() const noexcept { return store_.get(); }
  /// The process that opened it. A child of `fork` takes none of its locks and finds nothing.
  const base::Origin& origin() const noexcept { return origin_; }

  /// Locks the cache: while the result lives, no number changes.
  std::unique_lock<base::SpinLock> freeze() const {
    std::unique_lock lock(lock_);
    table_.settle();
    return lock;
  }
  /// Call it while frozen.
  CacheMetrics metrics_locked() const;

 private:
  friend class HandleState;

  /// How much of an executable's code the driver generates now.
  enum class DriverCode : std::uint8_t { lazy, complete };
  /// A build, with everything that outlasts its caller.
  struct BuildRequest {
    Key key;
    std::shared_ptr<const device::Program> program;
    std::shared_ptr<device::DeviceBase> device;
    Instant until;
    DriverCode code;
    bool is_ahead = false;  ///< it is built on a thread of its own, and `find_or_build` returns
  };
  /// A build in flight.
  struct Build : base::Identified {
    enum class Stage : std::uint8_t {
      running,
      has_result,
      finished
    };  ///< finished: the result is stored, too

    explicit Build(Instant now) : began(now) {}
    void reach(Stage next) noexcept;
    /// Waits for `wanted`. Returns the stage when `clock` shows `until`, or earlier.
    Stage wait(Stage wanted, const Clock& clock, Instant until);

    const Instant began;
    std::atomic<int> waiting{0};
    /// Of the build, from `has_result` on. It exists from the beginning, so that no lack of memory
    /// prevents it.
    Result<device::Provided> result =
        Error(Errc::out_of_memory, "The host has no memory left to build a kernel.");

   private:
    std::mutex mutex_;
    base::Gate gate_;
    Stage stage_ = Stage::running;  ///< under `mutex_`
  };
  struct Built {
    ExecutablePointer executable;
    CacheTier tier = CacheTier::built;
    bool corrupt = false;   ///< the stored artefact was damaged
    bool compiled = false;  ///< by a compiler or driver
    Duration build_time{};
    std::optional<device::Artefact> to_store;
    Claim claim;  ///< held until it is stored, so that other processes find it there
  };
  /// A build on its own thread.
  struct BackgroundBuild {
    std::weak_ptr<Build> build;  ///< expires when the thread is about to end
    std::optional<base::Worker> worker;
  };

  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until,
                                   DriverCode code, bool is_ahead = false);
  Result<device::Provided> find_or_build(const BuildRequest& request);
  Result<device::Provided> start_build(const BuildRequest& request, const std::shared_ptr<Build>& build);
  /// Returns the result of `build`; timed_out if it is still running.
  static Result<device::Provided> result_at(Build::Stage stage, const Build& build,
                                            const BuildRequest& request);
  void run_build(const BuildRequest& request, Build& build) noexcept;
  std::optional<Built> build_executable(const BuildRequest& request,
                                        Result<device::Provided>& result) noexcept;
  Result<Built> try_build(const BuildRequest& request);
  void load_stored(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact);
  void load_bundled(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact);
  void count_corrupt(Built& built);
  void count_failure(const Key& key, const Error& error);
  void add(const BuildRequest& request, const Built& built, Removed& removed);
  void report(const BuildRequest& request, const Build& build, const Built* built) const noexcept;
  Result<void> subscribe_sink();
  void start_warming_compilers();

  const base::Origin origin_;
  const CacheOptions options_;
  const Clock& clock_;
  const base::Logger log_;
  const std::shared_ptr<base::Journal> journal_;
  base::Subscription build_sink_;
  const std::unique_ptr<ArtefactStore> store_;  ///< null without one
  std::optional<StoredDriverRecords> records_;  ///< in `store_`, if there is one
  const std::unique_ptr<DriverTier> drivers_;   ///< likewise
  const std::shared_ptr<const DirectoryStore> directory_;
  const std::vector<Bundle> bundles_;
  std::weak_ptr<device::UseObserver> observer_;
  const std::shared_ptr<const void> compilers_;  ///< keeps them loaded
  std::optional<base::Worker> warming_;
  Descriptions descriptions_;

  mutable base::SpinLock lock_;  ///< guards all that follows
  mutable Table table_;
  std::unordered_map<Key, std::shared_ptr<Build>, KeyHash> builds_;  ///< in flight
  std::list<BackgroundBuild> background_builds_;                     ///< whose callers timed out
  std::unordered_set<std::uint64_t> devices_;                        ///< those that may reclaim memory
};

/// Opens a ShaderCache. `journal`: null: its own.
/// Errors: those of `ShaderCache::open`.
Result<ShaderCache> open(CacheOptions options, const std::shared_ptr<base::Journal>& journal);

/// Returns the key of the code that a driver generates from an artefact.
Digest build_name(const Digest& artefact, const device::DeviceBase& device);

/// The cache behind a ShaderCache.
Cache& of(const ShaderCache& cache);
std::shared_ptr<Cache> share(const ShaderCache& cache);

}  // namespace wye::cache
