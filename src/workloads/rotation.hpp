#pragma once
/// Rotations of pairs of elements, as kernels and on the host.
#include <algorithm>
#include <bit>
#include <cstdint>

namespace wye::inline v0::workloads {

/// A kernel parameter, also declared in `shaders/include/rope.glsl` and `.cuh`. A team of
/// 2^lanes_log2 items rotates at most `team_heads` heads of one row, an item two pairs at a time.
struct Rotation {
  std::uint32_t rows = 0;
  std::uint32_t heads = 0;  ///< of a row
  std::uint32_t head_size = 0;
  std::uint32_t rotated = 0;  ///< elements of a head
  std::uint32_t team_heads = 8;
  std::uint32_t lanes_log2 = 0;
  std::uint32_t neighbours = 0;
  std::uint32_t ratio_low = 0;  ///< base^(-2 / rotated) in units of 2^-64
  std::uint32_t ratio_high = 0;
  // Frequencies of pairs are scaled by 1 - s(i): s(i) is `shrink` up to pair `ramp_first`, and grows by
  // `slope` with each of the next `ramp_length` pairs.
  std::uint32_t ramp_first = 0;
  std::uint32_t ramp_length = 0;
  std::uint32_t shrink_low = 0;  ///< in units of 2^-64
  std::uint32_t shrink_high = 0;
  std::uint32_t slope_low = 0;  ///< in units of 2^-64
  std::uint32_t slope_high = 0;
  float magnitude = 1;  ///< of rotated elements

  std::uint32_t pairs() const { return rotated / 2; }
  std::uint32_t groups() const { return (heads + team_heads - 1) / team_heads; }
  std::uint64_t teams() const { return std::uint64_t{rows} * groups(); }
  std::uint64_t ratio() const { return ratio_low | std::uint64_t{ratio_high} << 32; }
  std::uint64_t shrink_of(std::uint32_t pair) const {
    const std::uint32_t steps = std::min(pair > ramp_first ? pair - ramp_first : 0, ramp_length);
    return (shrink_low | std::uint64_t{shrink_high} << 32) +
           steps * (slope_low | std::uint64_t{slope_high} << 32);
  }
};

/// Returns a b / 2^64, rounded down.
constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xffff'ffff, a1 = a >> 32, b0 = b & 0xffff'ffff, b1 = b >> 32;
  const std::uint64_t one = a0 * b1 + (a0 * b0 >> 32), other = a1 * b0 + (one & 0xffff'ffff);
  return a1 * b1 + (one >> 32) + (other >> 32);
}

/// Returns the turns for each position that pair i rotates by, ratio^i / (2 pi), in units of 2^-64.
/// The product with a position, modulo 2^64, is the angle without its whole turns.
constexpr std::uint64_t frequency(std::uint32_t i, std::uint64_t ratio) {
  std::uint64_t turns = 0x28be'60db'9391'054a;
  for (; i != 0; i >>= 1) {
    if ((i & 1) != 0) turns = high_product(turns, ratio);
    ratio = high_product(ratio, ratio);
  }
  return turns;
}

/// Returns turns / factor, rounded down, modulo 2^64. Divides by the 24 bits of the factor, a byte at a
/// time, and shifts by its exponent. Factors are at least 2^-8.
constexpr std::uint64_t divided(std::uint64_t turns, float factor) {
  const auto bits = std::bit_cast<std::uint32_t>(factor);
  const std::uint32_t divisor = (bits & 0x7f'ffff) | 0x80'0000, exponent = bits >> 23 & 0xff;
  std::uint64_t quotient = 0;
  std::uint32_t rest = 0;
  for (int shift = 80; shift >= 0; shift -= 8) {  // of turns 2^23
    const std::uint64_t from = shift >= 24 ? turns >> (shift - 23) : turns << (23 - shift);
    const std::uint32_t some = rest << 8 | static_cast<std::uint32_t>(from & 0xff);
    quotient = quotient << 8 | some / divisor;
    rest = some % divisor;
  }
  if (exponent < 127) return quotient << std::min(127 - exponent, 31u);
  return exponent - 127 < 64 ? quotient >> (exponent - 127) : 0;
}

struct Turn {
  float cosine = 1;
  float sine = 0;
};

/// Returns the cosine and the sine of an angle in units of 2^-64 turns. `shaders/include/rope.glsl`
/// has the same polynomials.
constexpr Turn turn_by(std::uint64_t angle) {
  const auto top = static_cast<std::uint32_t>(angle >> 32);
  const std::uint32_t quarter = (top + 0x2000'0000u) >> 30;
  const float a =
      static_cast<float>(static_cast<std::int32_t>(top - (quarter << 30))) * 1.4629180792671596e-9f;
  const float z = a * a;
  const float sine = a + a * z * (-0.16666650665f + z * (0.0083319783935f + z * -0.00019495601938f));
  const float cosine =
      1.0f - 0.5f * z + z * z * (0.041666646861f + z * (-0.0013887367213f + z * 2.4438415518e-5f));
  const Turn turned = (quarter & 1) == 0 ? Turn{cosine, sine} : Turn{-sine, cosine};
  return (quarter & 2) == 0 ? turned : Turn{-turned.cosine, -turned.sine};
}

}  // namespace wye::workloads
