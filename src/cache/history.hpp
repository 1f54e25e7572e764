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

#include "cache/table.hpp"
#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// The use of a kernel on a device in this process, whether its executable still exists or not.
struct UseRecord {
  ManifestEntry entry;
  KernelMetrics metrics;  ///< without `uses`
  std::uint64_t order = 0;
};

/// The kernels that went through a compiler or driver: the first 10,000.
/// Threads: the caller's mutex guards it.
class UseHistory {
 public:
  /// Returns the record of the kernel that `entry` is built from; null if there is no room for it.
  UseRecord* record(const Entry& entry, const device::DeviceBase& device, const std::string& kernel);
  /// Returns all records in the order of first use, including the hits of the entries in `table`.
  std::vector<UseRecord> all(const Table& table) const;

 private:
  std::map<std::pair<Digest, std::string>, UseRecord> records_;  ///< by key and device id
};

/// Why a key has no executable.
struct Absence {
  Removal why = Removal::evicted;
  std::optional<Error> failure;  ///< set if the build failed; `why` then has no meaning
  Instant at;
  std::uint64_t order = 0;

  /// A failed build is not repeated before this.
  Instant expiry() const noexcept;
  bool is_believed(Instant now) const noexcept { return failure && now < expiry(); }
};

/// The last 512 keys that have none.
/// Threads: the caller's mutex guards it.
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

}  // namespace cache
}  // namespace v0
}  // namespace wye
