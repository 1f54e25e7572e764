#pragma once
/// Cryptographic digests.
#include <wye/base/blob_store.hpp>
#include <wye/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace wye::inline v0 {

/// Computes the digest of a sequence of fields. Each field is preceded by its length, so ("ab","c")
/// and ("a","bc") differ.
/// Threads: one thread at a time.
/// Source:  BLAKE2b-256, RFC 7693.
class Hasher {
 public:
  Hasher() noexcept;
  Hasher& add(std::span<const std::byte> field) noexcept;
  Hasher& add(std::string_view field) noexcept;
  Hasher& add(std::uint64_t field) noexcept;  ///< as 8 bytes, little endian
  Digest finish() noexcept;                   ///< the hasher is fresh afterwards

 private:
  alignas(64) std::byte state_[384];
};

/// Returns the plain BLAKE2b-256 of `content`, without a length.
Digest digest(std::span<const std::byte> content) noexcept;

}  // namespace wye
