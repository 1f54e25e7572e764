#pragma once
/// The live executables of a cache, in the order of their use and within its bounds.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/cache/shader_cache.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "device/executable.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

struct UseRecord;

/// Names an executable: the key of its program, and the device by `DeviceBase::instance`.
struct Key {
  Digest digest;
  std::uint64_t device = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept;
};

using ExecutablePointer = std::shared_ptr<device::ExecutableBase>;

/// An executable and its use. Handles share it; it may outlive its place in the table.
struct Entry {
  Key key;
  std::string label;  ///< "scale@vulkan:0"
  Bytes bytes;
  CacheTier tier = CacheTier::none;
  Duration build_time{};
  UseRecord* record = nullptr;                  ///< null if the use is not recorded
  std::weak_ptr<device::ExecutableBase> alive;  ///< found as long as a user holds it
  ExecutablePointer kept;                       ///< null if it exceeds the bounds or left the table
  bool is_protected = false;                    ///< `Eviction::slru`: used at least twice
  std::uint64_t used = 0;                       ///< stamp of the last use, without unsettled handles
  std::uint64_t hits = 0;                       ///< likewise
  std::atomic<std::uint64_t> latest{0};  ///< a stamp; equal to the last one if this entry was used last
};

/// Why an executable left the table.
enum class Removal : std::uint8_t { evicted, reclaimed, cleared, lost };

/// The entries that left the table. The caller destroys it without a lock, because drivers destroy executables slowly.
struct RemovedList {
  std::vector<std::pair<std::shared_ptr<Entry>, Removal>> entries;
  std::vector<ExecutablePointer> executables;  ///< of `entries`, and those that the table released
};

/// Threads: the caller's lock guards all of it, except `stamp`, which is thread-safe.
class Table {
 public:
  Table(std::uint64_t kernels, Bytes memory, Eviction eviction)
      : kernels_(kernels), memory_(memory), eviction_(eviction) {}

  /// Returns the stamp of a new use of `entry`, or 0 if `entry` was already the most recently used entry.
  std::uint64_t stamp(Entry& entry) noexcept {
    if (entry.latest.load(std::memory_order_relaxed) == uses_.load(std::memory_order_relaxed)) return 0;
    const std::uint64_t now = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
    entry.latest.store(now, std::memory_order_relaxed);
    return now;
  }
  /// Counts a use of `entry` by the holder of the lock.
  void use(Entry& entry) noexcept {
    if (const std::uint64_t now = stamp(entry)) entry.used = now;
  }
  /// Whether a further use of `entry` moves it to another segment.
  bool rises(const Entry& entry) const noexcept { return eviction_ == Eviction::slru && !entry.is_protected; }
  /// Moves `entry` to the protected segment, which holds at most 80 % of the room.
  void protect(Entry& entry);

  /// Returns the entry under `key`, whether its executable is alive or not; null if there is none.
  std::shared_ptr<Entry> find(const Key& key) const;
  /// Adds `entry` as the most recently used entry. It replaces an entry of the same key.
  void insert(std::shared_ptr<Entry> entry, RemovedList& removed);
  /// Keeps `executable` alive in `entry` again.
  void keep(Entry& entry, ExecutablePointer executable, RemovedList& removed);
  /// Removes idle entries of `device`, least recently used first, until `wanted` bytes are free.
  Bytes reclaim(std::uint64_t device, Bytes wanted, RemovedList& removed);
  void remove_device(std::uint64_t device, RemovedList& removed);
  void remove_idle(RemovedList& removed);

  bool is_full() const;
  /// Calls `f(entry, is_alive)` for each entry.
  template <class F>
  void each(F f) const {
    for (const auto& [key, entry] : entries_) f(*entry, !entry->alive.expired());
  }

 private:
  using Entries = std::unordered_map<Key, std::shared_ptr<Entry>, KeyHash>;
  class EvictionOrder;

  bool exceeded(std::uint64_t kernels, Bytes bytes) const noexcept {
    return kernels > kernels_ || bytes > memory_;
  }
  void remove(Entries::iterator place, Removal why, RemovedList& removed);
  void trim(RemovedList& removed);

  const std::uint64_t kernels_;
  const Bytes memory_;
  const Eviction eviction_;
  Entries entries_;
  alignas(64) std::atomic<std::uint64_t> uses_{1};  ///< handles change it without the lock
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
