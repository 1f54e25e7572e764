#include "scheduler/timing.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace wye::inline v0::scheduler {

std::uint32_t size_class(std::uint64_t n) noexcept {
  if (n < 2) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
  const std::uint64_t two_bits = octave < 2 ? n << (2 - octave) : n >> (octave - 2);
  return octave * 4 + static_cast<std::uint32_t>(two_bits & 3);
}

std::uint64_t least_of_class(std::uint32_t size_class) noexcept {
  const std::uint32_t octave = size_class / 4, quarters = 4 + size_class % 4;
  return size_class == 0 ? 0
         : octave < 2    ? quarters >> (2 - octave)
                         : std::uint64_t{quarters} << (octave - 2);
}

void Timing::note(Duration took) noexcept {
  constexpr std::uint32_t first = 8;  // too few to know an outlier
  constexpr int forgetting = 8;
  took = std::clamp(took, Duration(1), longest_time);
  least = count == 0 ? took : std::min(took, least + (count < first ? Duration::zero() : least / 256));
  if (count >= first) took = std::min(took, 2 * mean + 8 * spread);
  const Duration distance = took - mean;
  if (count >= first && -distance > 2 * spread) {
    mean += distance / 2;
  } else {
    if (count > 0) spread += (std::max(distance, -distance) - spread) / (count == 1 ? 1 : forgetting);
    mean += distance / (count == 0 ? 1 : forgetting);
  }
  if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
}

}  // namespace wye::scheduler
