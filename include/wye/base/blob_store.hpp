#pragma once
/// The port to the storage of compiled kernels: a directory by default, or the application's own
/// storage.
#include <wye/base/config.hpp>
#include <wye/base/result.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wye::inline v0 {

/// 256 bits that identify some content.
struct Digest {
  std::array<std::byte, 32> bytes{};
  friend constexpr auto operator<=>(const Digest&, const Digest&) = default;
  /// Returns 64 lower-case hexadecimal digits.
  WYE_API std::string hex() const;
};

/// Storage for blobs under digests, for `CacheOptions::store`. A store may lose blobs, but must not
/// confuse them: the cache checks the content of each blob. An exception counts as an error.
/// Threads: thread-safe; several processes may share one store.
class WYE_API BlobStore {
 public:
  virtual ~BlobStore();
  /// Returns the blob stored under `key`, or nothing.
  /// Errors: io.
  virtual Result<std::optional<std::vector<std::byte>>> get(const Digest& key) = 0;
  /// Stores `blob` under `key`, entirely or not at all.
  /// Errors: io.
  virtual Result<void> put(const Digest& key, std::span<const std::byte> blob) = 0;
  /// Removes the blob stored under `key`, if there is one.
  /// Errors: io.
  virtual Result<void> remove(const Digest& key) = 0;
};

}  // namespace wye
