#pragma once
/// What a ShaderCache is inside.
#include <wye/cache/shader_cache.hpp>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/gate.hpp"
#include "base/logger.hpp"
#include "cache/artefact_store.hpp"
#include "device/provider.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// Live executables by key and device, in memory; their artefacts in a store.
///
/// A hit locks one of a few reader locks, each thread its own, so that hits do not meet; who changes the
/// table holds `mutex_` and all of them. Order of use is exact: a count that every use moves on, unless it
/// was the last one to.
/// Threads: thread-safe. Builds, drivers, the store and the ends of executables see no lock held.
class Cache final : public device::ExecutableProvider, public device::Reclaimable {
 public:
  /// `store` takes the place of the directory that `options` name.
  /// Errors: io.
  static Result<std::shared_ptr<Cache>> open(const CacheOptions& options,
                                             std::shared_ptr<BlobStore> store = nullptr);

  std::optional<Duration> build_cost(const device::Program& program,
                                     const device::DeviceBase& device) const override;
  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until) override;
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) override;

  void clear();
  std::vector<std::string> contents() const;
  const Clock& clock() const noexcept { return clock_; }

  /// While what it returns lives, nothing changes.
  class Frozen;
  Frozen freeze() const;
  /// To be called while frozen.
  CacheMetrics metrics_locked() const;

  Cache(const CacheOptions& options, std::shared_ptr<BlobStore> store);  ///< for `open`

 private:
  struct Key {
    Digest digest;
    const device::DeviceBase* device;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  using ExecutablePointer = std::shared_ptr<device::ExecutableBase>;
  /// Executables that have left the table: they end when no lock is held.
  using Leaving = std::vector<ExecutablePointer>;

  struct Entry {
    ExecutablePointer kept;                       ///< null where the bounds have no room for it
    std::weak_ptr<device::ExecutableBase> alive;  ///< it is found for as long as somebody uses it
    Bytes bytes;
    std::string label;
    mutable std::atomic<std::uint64_t> used{0};
  };
  using Table = std::unordered_map<Key, Entry, KeyHash>;

  /// A build under way, and who waits for it.
  struct Flight {
    base::Gate gate;
    bool done = false;
    Result<device::Provided> result = device::Provided{};
  };
  struct Built {
    ExecutablePointer executable;
    CacheTier tier = CacheTier::built;
    Duration took{};
    std::optional<device::Artefact> to_store;
  };
  struct Cost {
    Duration total{};
    std::int64_t builds = 0;
  };

  struct alignas(64) Reader {
    std::mutex mutex;
    std::uint64_t hits = 0;
  };
  static constexpr std::size_t reader_count = 16;

  /// All reader locks at once.
  class AllReaders {
   public:
    explicit AllReaders(const Cache& cache);

   private:
    std::array<base::Lock, reader_count> locks_;
  };

  Reader& reader() const noexcept;
  void touch(const Entry& entry) const noexcept;
  ExecutablePointer find_kept(const Key& key) const;
  Result<device::Provided> find_or_build(const Key& key, const device::Program& program,
                                         device::DeviceBase& device, Instant until);
  Result<Built> build(const Digest& digest, const device::Program& program, device::DeviceBase& device);
  Result<Built> try_build(const Digest& digest, const device::Program& program, device::DeviceBase& device);

  // Under `mutex_`.
  ExecutablePointer revive(const Key& key, Leaving& leaving);
  void keep(const Key& key, const Built& built, std::string label, Leaving& leaving);
  void forget(const device::DeviceBase& device, Leaving& leaving);

  // Under `mutex_` and all readers.
  bool exceeded(std::uint64_t kernels, Bytes bytes) const noexcept;
  void leave(Table::iterator entry, Leaving& leaving);
  std::vector<Table::iterator> kept_in_order();
  void trim(Leaving& leaving);

  const CacheOptions options_;
  const Clock& clock_;
  const base::Logger log_;
  const std::unique_ptr<ArtefactStore> store_;   ///< null without one
  const std::shared_ptr<const void> compilers_;  ///< loaded for as long as there is a cache to fill

  mutable std::array<Reader, reader_count> readers_;
  mutable std::mutex mutex_;
  Table entries_;  ///< changed under `mutex_` and all readers
  mutable std::atomic<std::uint64_t> uses_{1};
  std::unordered_map<Key, std::shared_ptr<Flight>, KeyHash>
      flights_;                                     ///< under `mutex_`, as all that follows
  std::map<std::string, Cost, std::less<>> costs_;  ///< of builds, by device id
  CacheMetrics counted_;                            ///< without what the table and readers know
};

class Cache::Frozen {
 public:
  explicit Frozen(const Cache& cache) : state_(cache.mutex_), readers_(cache) {}

 private:
  base::Lock state_;
  AllReaders readers_;
};

/// The cache behind a handle.
const Cache& of(const ShaderCache& cache);

}  // namespace cache
}  // namespace v0
}  // namespace wye
