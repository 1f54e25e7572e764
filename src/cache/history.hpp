#pragma once
/// The history of kernels: uses, failures and removals.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>
#include <wye/cache/shader_cache.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "device/executable.hpp"

namespace wye::inline v0::cache {

/// Names an executable: the key of its program, and the device by `DeviceRef::generation`.
struct Key {
  Digest digest;
  std::uint64_t device = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept;
};

/// The use of a kernel on a device in this process, whether its executable still exists or not.
struct KernelRecord {
  ManifestEntry entry;    ///< without `uses`
  KernelMetrics metrics;  ///< of the device with this id, in all of its generations
  std::size_t order = 0;  ///< of first use
};

/// The kernels that went through a compiler or driver: the first 10,000.
/// Threads: the caller's lock guards it.
class KernelHistory {
 public:
  /// Counts a build or load of `executable`. Returns the record of its kernel, which stays; null if
  /// there is no room for one.
  KernelRecord* add_build(const Digest& key, const device::ExecutableBase& executable, CacheTier tier,
                          Duration took);
  /// Both in the order of first use.
  Manifest manifest() const;
  std::vector<KernelMetrics> metrics() const;

 private:
  std::vector<const KernelRecord*> in_order() const;

  std::map<std::pair<Digest, std::string>, KernelRecord> records_;  ///< by key and device id
};

/// Why an executable left the table.
enum class Removal : std::uint8_t { evicted, reclaimed, cleared, lost };

/// Why a key has no executable.
struct Absence {
  Removal why = Removal::evicted;
  std::optional<Error> failure = {};  ///< set if the build failed; `why` then has no meaning
  Instant at = {};
  std::uint64_t order = 0;

  /// A failed build is not repeated before this.
  Instant expiry() const noexcept;
  bool is_believed(Instant now) const noexcept { return failure && now < expiry(); }
};

/// The last 512 keys that have none.
/// Threads: the caller's lock guards it.
class Absences {
 public:
  const Absence* find(const Key& key) const;
  /// Forgets evictions before failures that are still believed: each of these saves a build.
  void add(const Key& key, Removal why, std::optional<Error> failure, Instant now);
  void erase(const Key& key) { absences_.erase(key); }
  void forget_failures();

 private:
  std::unordered_map<Key, Absence, KeyHash> absences_;
  std::uint64_t added_ = 0;
};

}  // namespace wye::cache
