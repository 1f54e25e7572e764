#include "base/checksum.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace wye::inline v0::base {

Checksum checksum(std::span<const std::byte> head, std::span<const std::byte> rest) noexcept {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  for (const auto piece : {head, rest}) XXH3_128bits_update(&state, piece.data(), piece.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  Checksum sum;
  static_assert(sizeof(sum) == sizeof(canonical.digest));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<std::byte>(canonical.digest[i]);
  return sum;
}

}  // namespace wye::base
