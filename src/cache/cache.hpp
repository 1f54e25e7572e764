#pragma once
/// The implementation of ShaderCache.
#include <wye/cache/shader_cache.hpp>

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/gate.hpp"
#include "base/logger.hpp"
#include "base/process.hpp"
#include "base/worker.hpp"
#include "cache/descriptions.hpp"
#include "cache/history.hpp"
#include "cache/store/artefact_store.hpp"
#include "cache/store/bundle.hpp"
#include "cache/store/directory_store.hpp"
#include "cache/store/driver_tier.hpp"
#include "cache/table.hpp"
#include "device/memory_account.hpp"
#include "device/provider.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

class HandleState;

/// Finds executables in a table, or builds them: one build per key among all threads (single-flight), and among all
/// processes that share a store.
///
/// A hit by kernel takes one spin lock and looks up the program's id and the device: it computes no key. All else takes
/// the mutex first. No lock is held during a build, a call of a driver or the store, a callback, or the end of an
/// executable, except the claim on the key between processes.
/// A build that a caller awaits with a deadline runs on its own thread, because compilers cannot be cancelled. If the
/// deadline passes first, the build continues, and later calls use its result.
/// Threads: thread-safe.
class Cache final : public device::ExecutableProvider, public device::Reclaimable {
 public:
  /// Opens a cache.
  /// Errors: io; those of `Bundle::open`.
  static Result<std::shared_ptr<Cache>> open(const CacheOptions& options);
  Cache(const CacheOptions& options, std::unique_ptr<ArtefactStore> store,
        std::shared_ptr<const DirectoryStore> directory, std::vector<Bundle> bundles);  ///< for `open`
  ~Cache() override;

  /// Reports to `observer` each program and device that is not found by its id. Call it before the first use.
  void observe(std::weak_ptr<device::UseObserver> observer) { observer_ = std::move(observer); }

  /// Returns the executable of `program` if it is kept and was found by this program before; otherwise null.
  ExecutablePointer find_ready(const device::Program& program, const device::DeviceBase& device);

  std::optional<Duration> build_cost(const device::Program& program,
                                     const device::DeviceBase& device) const override;
  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until) override;
  Result<device::Provided> make_ready(const std::shared_ptr<const device::Program>& program,
                                      const std::shared_ptr<device::DeviceBase>& device,
                                      Instant until) override;
  Result<device::Provided> provide(const KernelDescription& description,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until);
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) override;

  void clear();
  /// Stores the code that drivers made and that is not stored yet.
  void save_driver_code();
  /// Whether a further executable would evict another one.
  bool is_full() const;
  /// Labels of the live executables, the last to be evicted first.
  std::vector<std::string> contents() const;
  std::string explain(const device::Program& program, const device::DeviceBase& device) const;
  Manifest manifest() const;
  std::vector<KernelMetrics> kernel_metrics() const;
  const Clock& clock() const noexcept override { return clock_; }
  /// The process that opened it. A child of `fork` takes none of its locks and finds nothing.
  const base::Origin& origin() const noexcept { return origin_; }

  /// Locks the table: while the result lives, no number changes.
  struct TableLock {
    base::Lock mutex;
    std::unique_lock<base::SpinLock> table;
  };
  TableLock freeze() const { return {base::Lock(mutex_), std::unique_lock(table_lock_)}; }
  /// Call it while frozen.
  CacheMetrics metrics_locked() const;

 private:
  friend class HandleState;

  /// The entry in which a program was last found on a device.
  struct Alias {
    std::uint64_t program = 0;
    std::uint64_t device = 0;
    std::shared_ptr<Entry> entry;
  };
  /// How much of an executable's code the driver generates now.
  enum class DriverCode : std::uint8_t { lazy, complete };
  /// A build, with everything that outlasts its caller.
  struct BuildRequest {
    Key key;
    std::shared_ptr<const device::Program> program;
    std::shared_ptr<device::DeviceBase> device;
    Instant until;
    DriverCode code;
  };
  /// A build in flight.
  struct Build {
    base::Gate gate;
    bool has_result = false;
    bool is_finished = false;  ///< the result is stored, too
    Instant began;
    int waiting = 0;
    Result<device::Provided> result = device::Provided{};
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
    std::weak_ptr<const Build> build;  ///< expires when the thread is about to end
    std::optional<base::Worker> worker;
  };
  struct BuildCost {
    Duration total{};
    std::int64_t builds = 0;
  };

  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until,
                                   DriverCode code);
  Result<device::Provided> find_or_build(const BuildRequest& request);
  Result<device::Provided> start_build(const BuildRequest& request, const std::shared_ptr<Build>& build);
  std::list<BackgroundBuild> start_in_background(const BuildRequest& request,
                                                 const std::shared_ptr<Build>& build);
  void run_build(const BuildRequest& request, Build& build);
  Result<Built> build_executable(const BuildRequest& request);
  Result<Built> try_build(const BuildRequest& request);
  void load_stored(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact);
  void load_bundled(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact);
  void count_corrupt(Built& built);
  void report(const BuildRequest& request, const Build& build, const Result<Built>& built) const;
  void start_warming_compilers();

  // Under `mutex_`.
  ExecutablePointer find_alive(const Key& key, std::uint64_t program, RemovedList& removed);
  void add(const BuildRequest& request, Built& built, RemovedList& removed);
  void count_built(const Built& built, const Key& key);
  void add_absence(const Key& key, Removal why, std::optional<Error> failure = std::nullopt);
  std::optional<Duration> expected_cost(const device::DeviceBase& device) const;

  // Under both locks.
  Alias& alias(std::uint64_t program, std::uint64_t device) noexcept {
    return aliases_[(program + device * 389) % aliases_.size()];  // both count from 1
  }
  void count_removed(const RemovedList& removed);
  void settle_handles() const noexcept;

  const base::Origin origin_;
  const CacheOptions options_;
  const Clock& clock_;
  const base::Logger log_;
  const std::unique_ptr<ArtefactStore> store_;  ///< null without one
  const std::unique_ptr<DriverTier> drivers_;   ///< likewise
  const std::shared_ptr<const DirectoryStore> directory_;
  const std::vector<Bundle> bundles_;
  std::weak_ptr<device::UseObserver> observer_;
  const std::shared_ptr<const void> compilers_;  ///< keeps them loaded
  std::optional<base::Worker> warming_;
  Descriptions descriptions_;

  mutable base::SpinLock table_lock_;  ///< locked after `mutex_`; a hit by kernel locks it alone
  mutable Table table_;                ///< under both locks; a hit changes an entry's use only
  std::array<Alias, 1024> aliases_;    ///< likewise; the last one of each place

  mutable std::mutex mutex_;                                         ///< guards all that follows
  std::unordered_map<Key, std::shared_ptr<Build>, KeyHash> builds_;  ///< in flight
  std::list<BackgroundBuild> background_builds_;                     ///< whose callers timed out
  std::map<std::string, BuildCost, std::less<>> costs_;              ///< by device id
  Absences absences_;
  UseHistory history_;
  std::unordered_set<HandleState*> handles_;
  CacheMetrics counted_;  ///< without the hits and sizes of the table's entries
};

/// Returns the key of the code that a driver generates from an artefact.
Digest build_name(const Digest& artefact, const device::DeviceBase& device);

/// The cache behind a ShaderCache.
Cache& of(const ShaderCache& cache);
std::shared_ptr<Cache> share(const ShaderCache& cache);

}  // namespace cache
}  // namespace v0
}  // namespace wye
