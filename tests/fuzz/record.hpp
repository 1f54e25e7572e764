#pragma once
/// Modified records of the disk tier.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/checksum.hpp"

namespace wye::test {

/// Corrects the checksum of a record, so that the reader behind it is reached.
inline void sign_record(std::vector<std::byte>& bytes) {
  // magic 10, version 8, key 32, size 8; then the checksum of these and of everything that follows
  // it.
  constexpr std::size_t size_at = 50, checksum_at = 58, payload_at = checksum_at + sizeof(base::Checksum);
  if (bytes.size() < payload_at) return;
  const std::uint64_t size = bytes.size() - payload_at;
  for (std::size_t i = 0; i < 8; ++i) bytes[size_at + i] = static_cast<std::byte>(size >> (8 * i));
  const std::span<const std::byte> all(bytes);
  std::ranges::copy(base::checksum(all.first(checksum_at), all.subspan(payload_at)),
                    bytes.begin() + checksum_at);
}

}  // namespace wye::test
