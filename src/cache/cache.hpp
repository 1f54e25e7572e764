#pragma once
/// What a ShaderCache is inside.
#include <wye/cache/shader_cache.hpp>

#include <array>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/logger.hpp"
#include "base/worker.hpp"
#include "cache/artefact_store.hpp"
#include "cache/bundle.hpp"
#include "cache/descriptions.hpp"
#include "cache/directory_store.hpp"
#include "cache/driver_tier.hpp"
#include "device/provider.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// When an executable was used, and how often. It outlives the entry of its executable: handles have their own hold on it.
struct Tally {
  std::atomic<std::uint64_t> latest{0};  ///< a use; the last one, where it is the cache's
  std::atomic<std::uint64_t> used{0};    ///< the last use, once slots and handles have told theirs
  std::atomic<std::uint64_t> hits{0};    ///< the same
};

class Hold;

/// Live executables by key and device, in memory; their artefacts in a store.
///
/// A hit enters one of a few doors, each thread its own, so that hits do not meet. Behind it are the
/// executables that were last found there, by program and device, each with a count of its own (`Slot`): no
/// key is computed, and no line of memory written that another thread writes. Who changes the table holds
/// `mutex_` and all doors. Order of use is exact: a count that every use moves on, unless it was the last one
/// to; threads that use different kernels at once share that line.
///
/// Who asks with a deadline may not be kept by a compiler, and no compiler can be told to stop: then the build has a
/// thread of its own, and where the deadline passes first, it goes on for those who ask next.
///
/// Who asks with all that a kernel is made of, gets it by way of the same door: beside the executables lie the
/// descriptions they were last found by, which are compared whole.
/// Threads: thread-safe. Builds, drivers, the store and the ends of executables see no lock held but the claim
///          on the key between processes.
class Cache final : public device::ExecutableProvider, public device::Reclaimable {
 public:
  using ExecutablePointer = std::shared_ptr<device::ExecutableBase>;

  /// `store` takes the place of the directory that `options` name.
  /// Errors: io.
  static Result<std::shared_ptr<Cache>> open(const CacheOptions& options,
                                             std::shared_ptr<BlobStore> store = nullptr);

  /// Tells `observer` of every use that is not one of what was found lately. To be called before anything is used.
  void tell(std::weak_ptr<device::UseObserver> observer) { observer_ = std::move(observer); }

  /// What this thread has found lately, if it is that; else null, whether it is ready or not.
  ExecutablePointer find_again(const device::Program& program, const device::DeviceBase& device) const;
  ExecutablePointer find_again(const KernelDescription& description, std::uint64_t sample,
                               const device::DeviceBase& device) const;

  std::optional<Duration> build_cost(const device::Program& program,
                                     const device::DeviceBase& device) const override;
  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until) override;
  Result<device::Provided> make_ready(const std::shared_ptr<const device::Program>& program,
                                      const std::shared_ptr<device::DeviceBase>& device,
                                      Instant until) override;
  /// `sample` is `kernel::sample` of the description, here and above.
  Result<device::Provided> provide(const KernelDescription& description, std::uint64_t sample,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until);
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) override;

  void clear();
  /// Stores what drivers made and nobody has stored yet.
  void save_drivers();
  /// Whether one more would be one too many.
  bool is_full() const;
  std::vector<std::string> contents() const;
  std::string explain(const device::Program& program, const device::DeviceBase& device) const;
  /// What has been used so far, of what went through a compiler or driver.
  Manifest manifest() const;
  std::vector<KernelMetrics> kernel_metrics() const;
  const Clock& clock() const noexcept override { return clock_; }
  /// Which process opened it. A child of `fork` takes no lock of it and finds nothing.
  const base::Origin& origin() const noexcept { return origin_; }

  /// While what it returns lives, nothing changes.
  class Frozen;
  Frozen freeze() const;
  /// To be called while frozen.
  CacheMetrics metrics_locked() const;

  Cache(const CacheOptions& options, std::unique_ptr<ArtefactStore> store,
        std::shared_ptr<const DirectoryStore> directory, std::vector<Bundle> bundles);  ///< for `open`
  ~Cache() override;

  struct Key {
    Digest digest;
    const device::DeviceBase* device = nullptr;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// From now on `hold` counts for what has its key.
  void enter(Hold& hold);
  void leave(Hold& hold) noexcept;
  /// Makes what is tallied the one used last and says when that was, for `raise`; 0 where it was the last one already.
  std::uint64_t touch(Tally& tally) const noexcept {
    if (tally.latest.load(std::memory_order_relaxed) == uses_.load(std::memory_order_relaxed)) return 0;
    const std::uint64_t now = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
    tally.latest.store(now, std::memory_order_relaxed);
    return now;
  }
  static void raise(Tally& tally, std::uint64_t now) noexcept;

 private:
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  /// Executables that have left the table: they end when no lock is held.
  using Leaving = std::vector<ExecutablePointer>;

  /// A kernel on a device in this run, whether it is still there or not.
  struct Use {
    ManifestEntry entry;
    KernelMetrics metrics;  ///< without `uses`
    std::uint64_t order = 0;
  };
  using Uses = std::map<std::pair<Digest, std::string>, Use>;  ///< by key and device id

  struct Entry {
    ExecutablePointer kept;                       ///< null where the bounds have no room for it
    std::weak_ptr<device::ExecutableBase> alive;  ///< it is found for as long as somebody uses it
    std::weak_ptr<device::DeviceBase> device;
    Bytes bytes;
    std::string label;
    CacheTier tier = CacheTier::none;
    Duration took{};
    Use* use = nullptr;         ///< null where it is not recorded
    bool is_protected = false;  ///< of `Eviction::slru`: used again
    std::shared_ptr<Tally> tally = std::make_shared<Tally>();
  };
  using Table = std::unordered_map<Key, Entry, KeyHash>;

  /// A build under way, and who waits for it.
  struct Flight {
    base::Gate gate;
    bool done = false;  ///< there is a result
    bool over = false;  ///< and it is stored: nothing more is done for it
    Instant began;
    int waiting = 0;
    Result<device::Provided> result = device::Provided{};
  };
  struct Built {
    ExecutablePointer executable;
    CacheTier tier = CacheTier::built;
    bool corrupt = false;   ///< what was stored was damaged
    bool compiled = false;  ///< a compiler or driver made it
    Duration took{};
    std::optional<device::Artefact> to_store;
    Claim claim;  ///< held until it is stored, so that who waits for it finds it there
  };
  /// How much of its code a driver is to make.
  enum class Code : std::uint8_t { as_it_likes, all };
  /// What is asked for, with all that a build needs which outlasts who asked.
  struct Order {
    Key key;
    std::shared_ptr<const device::Program> program;
    std::shared_ptr<device::DeviceBase> device;
    Instant until;
    Code code;
  };
  /// A build on a thread of its own: one that somebody waits for who has a deadline.
  struct Apart {
    std::weak_ptr<const Flight> flight;  ///< its thread lets go of it last
    std::optional<base::Worker> worker;
  };
  struct Cost {
    Duration total{};
    std::int64_t builds = 0;
  };

  /// Why a key has no executable.
  enum class Gone : std::uint8_t { failed, no_room, reclaimed, cleared, lost };
  /// What is remembered of a key that has none.
  struct Past {
    std::weak_ptr<device::DeviceBase> device;  ///< its address may be another one's by now
    Gone why;
    std::optional<Error> failure;
    Instant at;
    std::uint64_t order;
  };

  /// An executable that was found behind this door. While there is a `pin`, the table has it, and `tally` is its entry's.
  struct Slot {
    std::uint64_t program = 0;
    const device::DeviceBase* device = nullptr;
    Tally* tally = nullptr;
    ExecutablePointer
        pin;  ///< counts its copies apart from those of other slots: counting is half a hit's cost
    std::uint64_t used = 0;
    std::uint64_t hits = 0;
    bool holds(std::uint64_t program_id, const device::DeviceBase& on) const noexcept {
      return program == program_id && device == &on && pin;
    }
  };
  struct alignas(64) Reader {
    base::Door door;
    std::array<Slot, 16> slots;
    std::array<Described, 8> described;
    Slot& slot(std::uint64_t program, const device::DeviceBase* device) noexcept {
      return slots[(program + (reinterpret_cast<std::uintptr_t>(device) >> 6)) %
                   std::tuple_size_v<decltype(slots)>];
    }
    Described& said(std::uint64_t sample) noexcept {
      return described[sample % std::tuple_size_v<decltype(described)>];
    }
  };
  static constexpr std::size_t reader_count = 32;

  /// Behind one door, where it was open.
  class Inside;
  /// All doors at once: nothing is found by way of them.
  class AllDoors;
  /// All doors, and no slot pins anything: the table may change.
  class Exclusive;
  class Queue;

  const ExecutablePointer& used_again(Slot& slot) const noexcept;
  Reader& reader() const noexcept { return readers_[base::thread_number() % reader_count]; }
  static void settle(Slot& slot) noexcept;
  static void empty(Slot& slot) noexcept;
  ExecutablePointer find_kept(const Key& key, std::uint64_t program) const;
  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until,
                                   Code code);
  Result<device::Provided> find_or_build(const Order& order);
  Result<device::Provided> begin(const Order& order, const std::shared_ptr<Flight>& flight);
  std::list<Apart> send_off(const Order& order, const std::shared_ptr<Flight>& flight);
  void fly(const Order& order, Flight& flight);
  Result<Built> build(const Order& order);
  Result<Built> try_build(const Order& order);
  void load(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact);
  void unpack(const Digest& digest, Built& built, std::optional<device::Artefact>& artefact);
  void count_corrupt(Built& built);

  void announce(const Order& order, const Flight& flight, const Result<Built>& built) const;
  std::vector<Use> uses() const;

  void warm_compilers();

  // Under all doors.
  void settle() const noexcept;

  // Under `mutex_`.
  std::optional<Duration> expected_cost(const device::DeviceBase& device) const;
  ExecutablePointer revive(const Key& key, Leaving& leaving);
  void keep(const Key& key, Built& built, std::string label, Leaving& leaving);
  void forget(const device::DeviceBase& device, Leaving& leaving);
  Use* record(const Key& key, const Built& built, const device::DeviceBase& device);
  const Past* past(const Key& key) const;
  void remember(const Key& key, std::weak_ptr<device::DeviceBase> device, Gone why,
                std::optional<Error> failure = std::nullopt);
  Instant expiry(const Past& past) const noexcept;

  // Under `mutex_` and all doors.
  bool exceeded(std::uint64_t kernels, Bytes bytes) const noexcept;
  void leave(Table::iterator entry, Gone why, Leaving& leaving);
  void trim(Leaving& leaving);
  void protect(Entry& entry);
  void demote();

  const base::Origin origin_;
  const CacheOptions options_;
  const Clock& clock_;
  const base::Logger log_;
  const std::unique_ptr<ArtefactStore> store_;  ///< null without one
  const std::unique_ptr<DriverTier> drivers_;   ///< the same
  const std::shared_ptr<const DirectoryStore> directory_;
  const std::vector<Bundle> bundles_;
  std::weak_ptr<device::UseObserver> observer_;
  const std::shared_ptr<const void> compilers_;  ///< loaded for as long as there is a cache to fill
  std::optional<base::Worker> warming_;

  mutable std::array<Reader, reader_count> readers_;
  Descriptions descriptions_;
  mutable std::mutex mutex_;
  Table entries_;  ///< changed under `mutex_` and all doors
  alignas(64) mutable std::atomic<std::uint64_t> uses_{1};
  alignas(64) std::unordered_map<Key, std::shared_ptr<Flight>,
                                 KeyHash> flights_;  ///< under `mutex_`, as all that follows
  std::map<std::string, Cost, std::less<>> costs_;   ///< of builds, by device id
  std::unordered_map<Key, Past, KeyHash> past_;
  Uses used_;
  std::uint64_t remembered_ = 0;
  std::unordered_set<Hold*> holds_;
  CacheMetrics counted_;   ///< without what the table and slots know
  std::list<Apart> late_;  ///< builds that nobody waited out
};

class Cache::AllDoors {
 public:
  explicit AllDoors(const Cache& cache) : cache_(cache) {
    for (Reader& reader : cache_.readers_) reader.door.enter();
  }
  AllDoors(const AllDoors&) = delete;  // leaves once
  ~AllDoors() {
    for (Reader& reader : cache_.readers_) reader.door.leave();
  }

 private:
  const Cache& cache_;
};

class Cache::Frozen {
 public:
  explicit Frozen(const Cache& cache) : state_(cache.mutex_), doors_(cache) {}

 private:
  base::Lock state_;
  AllDoors doors_;
};

/// Names what a driver is to make of an artefact.
Digest build_name(const Digest& artefact, const device::DeviceBase& device);

/// The cache behind a handle.
const Cache& of(const ShaderCache& cache);
std::shared_ptr<Cache> share(const ShaderCache& cache);

}  // namespace cache
}  // namespace v0
}  // namespace wye
