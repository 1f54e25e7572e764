#pragma once
/// The port to the storage of compiled kernels: a directory by default, or the application's own storage.
#include <wye/base/bytes.hpp>
#include <wye/base/digest.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace wye {
inline namespace v0 {

/// Stores blobs under digests. A store may lose blobs, but never confuse them. The caller verifies each blob.
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

}  // namespace v0
}  // namespace wye
