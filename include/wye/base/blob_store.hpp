#pragma once
/// The port behind which compiled kernels are kept: a directory by default, a host's own storage if it likes.
#include <wye/base/bytes.hpp>
#include <wye/base/digest.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace wye {
inline namespace v0 {

/// Keeps blobs under digests. What it gives back is checked by the caller: a store may lose blobs, never mix
/// them up.
/// Threads: thread-safe; several processes may share one store.
class WYE_API BlobStore {
 public:
  virtual ~BlobStore();
  /// The blob stored under `key`, or nothing.
  /// Errors: io.
  virtual Result<std::optional<std::vector<std::byte>>> get(const Digest& key) = 0;
  /// Stores `blob` under `key`, whole or not at all.
  /// Errors: io.
  virtual Result<void> put(const Digest& key, std::span<const std::byte> blob) = 0;
  /// Removes what is stored under `key`, if anything.
  /// Errors: io.
  virtual Result<void> remove(const Digest& key) = 0;
};

}  // namespace v0
}  // namespace wye
