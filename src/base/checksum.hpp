#pragma once
/// Detection of damaged bytes.
#include <array>
#include <cstddef>
#include <span>

namespace wye::inline v0::base {

/// XXH3 with 128 bits, most significant byte first: the same on every machine.
using Checksum = std::array<std::byte, 16>;

/// Returns the checksum of `head` followed by `rest`. It detects damage, but no deliberate forgery;
/// a `Digest` does.
/// Source: Y. Collet, xxHash specification, XXH3.
Checksum checksum(std::span<const std::byte> head, std::span<const std::byte> rest = {}) noexcept;

}  // namespace wye::base
