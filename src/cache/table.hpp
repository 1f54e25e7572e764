#pragma once
/// The live executables of a cache, in the order of their use and within its bounds, and the
/// numbers about them.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/cache/shader_cache.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/journal.hpp"
#include "cache/history.hpp"
#include "device/executable.hpp"

namespace wye::inline v0::cache {

using ExecutablePointer = std::shared_ptr<device::ExecutableBase>;
/// Executables that left the table, and their devices. The caller releases them without the lock,
/// because drivers destroy them slowly.
using Removed = std::vector<std::shared_ptr<const void>>;

/// An executable and its use. Handles share it; it may outlive its place in the table.
struct Entry {
  Key key;
  std::string label;  ///< "scale@vulkan:0"
  Bytes bytes;
  CacheTier tier = CacheTier::none;
  Duration build_time{};
  bool is_compiled = false;                     ///< by a compiler or driver; a host function is not
  std::weak_ptr<device::ExecutableBase> alive;  ///< found as long as a user holds it
  ExecutablePointer kept;                       ///< null if it exceeds the bounds or left the table
  KernelRecord* record = nullptr;               ///< null if the use is not recorded
  bool is_protected = false;                    ///< `Eviction::slru`: used at least twice
  std::uint64_t used = 0;                       ///< stamp of the last use, without unsettled handles
  std::uint64_t hits = 0;                       ///< likewise
  std::uint64_t counted = 0;                    ///< of `hits`: in the metrics and the record
  std::atomic<std::uint64_t> latest{0};  ///< a stamp; equal to the last one if this entry was used last
};

/// The uses of an entry that one handle counts without a lock. `Table::settle` adds them to the
/// entry.
struct HandleUses {
  std::shared_ptr<Entry> entry;
  std::atomic<std::uint64_t> used{0};  ///< a stamp
  std::atomic<std::uint64_t> hits{0};
  std::uint64_t settled = 0;  ///< of `hits`
};

/// Threads: the caller's lock guards all of it, except `stamp`, which is thread-safe.
class Table {
 public:
  /// `journal` outlives it.
  Table(const CacheOptions& options, const Clock& clock, base::Journal& journal)
      : kernels_(options.kernels),
        memory_(options.memory),
        eviction_(options.eviction),
        clock_(clock),
        journal_(journal) {}

  /// Returns the stamp of a new use of `entry`, or 0 if `entry` was already the most recently used
  /// entry.
  std::uint64_t stamp(Entry& entry) noexcept {
    if (entry.latest.load(std::memory_order_relaxed) == uses_.load(std::memory_order_relaxed)) return 0;
    const std::uint64_t now = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
    entry.latest.store(now, std::memory_order_relaxed);
    return now;
  }

  /// Returns the executable that `program` was last found by, if it is kept. Counts a hit.
  ExecutablePointer find(std::uint64_t program, std::uint64_t device) {
    const Alias& found = alias(program, device);
    if (found.program != program || found.device != device) return nullptr;
    Entry& entry = *found.entry;
    if (!entry.kept || rises(entry)) return nullptr;
    use(entry);
    ++entry.hits;
    return entry.kept;
  }
  /// Returns the executable of `key` if a user or the table holds it, and keeps it if the bounds
  /// allow. Counts a hit. From now on `program` finds it without the key.
  ExecutablePointer find(const Key& key, std::uint64_t program, Removed& removed);
  /// Returns the entry of `key`, whether its executable is alive or not; null if there is none.
  /// Counts nothing.
  std::shared_ptr<Entry> entry_of(const Key& key) const;
  /// Adds an entry that was just built or loaded as the most recently used one. It replaces an
  /// entry of the same key.
  /// `corrupt`: its stored artefact was damaged.
  void add(std::shared_ptr<Entry> entry, std::uint64_t program, bool corrupt, Removed& removed);

  /// Adds a handle, whose uses of `handle.entry` count from now on.
  void add(HandleUses& handle) { handles_.insert(&handle); }
  void remove(HandleUses& handle) noexcept;

  /// Removes idle entries of `device`, least recently used first, until `wanted` bytes are free.
  Bytes reclaim(std::uint64_t device, Bytes wanted, Removed& removed);
  void remove_device(std::uint64_t device, Removed& removed);
  void remove_idle(Removed& removed);

  void add_failure(const Key& key, const Error& error) {
    absences_.add(key, Removal::evicted, error, clock_.now());
  }
  const Absence* find_absence(const Key& key) const { return absences_.find(key); }
  void forget_failures() { absences_.forget_failures(); }

  /// Adds up the uses that handles counted. The functions below need it.
  void settle() noexcept;
  CacheMetrics metrics() const;
  /// The numbers so far, without the sizes of the entries.
  CacheMetrics& counted() noexcept { return counted_; }
  const KernelHistory& history() const noexcept { return history_; }
  /// The labels of the live executables, the last to be evicted first.
  std::vector<std::string> contents() const;
  bool is_full() const;
  /// The average time of the builds for a device.
  std::optional<Duration> build_cost(const std::string& device_id) const;

 private:
  using Entries = std::unordered_map<Key, std::shared_ptr<Entry>, KeyHash>;
  /// The entry in which a program was last found on a device.
  struct Alias {
    std::uint64_t program = 0;
    std::uint64_t device = 0;
    std::shared_ptr<Entry> entry;
  };
  struct Candidate {
    std::pair<bool, std::uint64_t> order;
    Entries::iterator place;
    friend bool operator<(const Candidate& a, const Candidate& b) noexcept { return a.order > b.order; }
  };
  struct BuildCost {
    Duration total{};
    std::int64_t builds = 0;
  };
  /// The numbers that the bounds limit. Executables that are not compiled count by their bytes alone: they cost
  /// nothing to make again.
  struct Size {
    std::uint64_t kernels = 0;
    Bytes bytes;
    Size& operator+=(const Entry& entry) noexcept {
      kernels += entry.is_compiled;
      bytes += entry.bytes;
      return *this;
    }
    Size& operator-=(const Entry& entry) noexcept {
      kernels -= entry.is_compiled;
      bytes -= entry.bytes;
      return *this;
    }
  };

  Alias& alias(std::uint64_t program, std::uint64_t device) noexcept {
    return aliases_[(program + device * 389) % aliases_.size()];  // both count from 1
  }
  static std::pair<bool, std::uint64_t> order(const Entry& entry) noexcept {
    return {entry.is_protected, entry.used};
  }
  /// Counts a use of `entry` by the holder of the lock.
  void use(Entry& entry) noexcept {
    if (const std::uint64_t now = stamp(entry)) entry.used = now;
  }
  /// Whether a further use of `entry` moves it to another segment.
  bool rises(const Entry& entry) const noexcept { return eviction_ == Eviction::slru && !entry.is_protected; }
  bool exceeded(const Size& size) const noexcept { return size.kernels > kernels_ || size.bytes > memory_; }

  /// Moves `entry` to the protected segment, which holds at most 80 % of the room.
  void protect(Entry& entry);
  /// Returns the kept entries, the first to be evicted on top. A heap, because most callers need
  /// few of them.
  std::priority_queue<Candidate> eviction_order();
  void remove(Entries::iterator place, Removal why, Removed& removed);
  void emit_eviction(const Entry& entry) const noexcept;
  /// Removes each entry for which `why(entry)` returns a reason.
  template <class F>
  void remove_if(F why, Removed& removed);
  void trim(Removed& removed);
  Size evict(bool are_many, Removed& removed);
  bool is_any_lost(Removed& removed);
  void settle(HandleUses& handle) noexcept;
  void count_hits(Entry& entry) noexcept;
  void count_build(const Entry& entry, bool corrupt);
  Size size() const;

  const std::uint64_t kernels_;
  const Bytes memory_;
  const Eviction eviction_;
  const Clock& clock_;
  base::Journal& journal_;
  Entries entries_;
  std::unordered_map<std::uint64_t, std::weak_ptr<const device::DeviceBase>> devices_;  ///< of the entries
  Size most_;                        ///< at least the size of the live executables
  std::size_t scan_at_{};            ///< the number of entries at which `trim` looks at all of them
  std::array<Alias, 1024> aliases_;  ///< the last one of each place
  std::unordered_set<HandleUses*> handles_;
  Absences absences_;
  KernelHistory history_;
  std::map<std::string, BuildCost, std::less<>> costs_;  ///< by device id
  CacheMetrics counted_;
  alignas(64) std::atomic<std::uint64_t> uses_{1};  ///< handles change it without the lock
};

}  // namespace wye::cache
