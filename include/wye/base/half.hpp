#pragma once
/// The storage formats `half` and `bfloat16`, 16 bits each. Convert them to float for arithmetic.
#include <wye/base/config.hpp>

#include <bit>
#include <cstdint>

namespace wye::inline v0 {

namespace detail {

/// Returns `bits` / 2^`by`, rounded to nearest, ties to even. `by` is from 1 to 31.
constexpr std::uint32_t round_off(std::uint32_t bits, std::uint32_t by) {
  return (bits + (std::uint32_t{1} << (by - 1)) - 1 + (bits >> by & 1u)) >> by;
}

constexpr std::uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fff'ffffu;
  std::uint32_t half = 0;  // below 2^-25, too
  if (size > 0x7f80'0000u)
    half = 0x7e00u | (size >> 13 & 0x3ffu);
  else if (size >= 0x477f'f000u)  // 65520
    half = 0x7c00u;
  else if (size >= 0x3880'0000u)  // 2^-14
    half = round_off(size - 0x3800'0000u, 13);
  else if (size >= 0x3300'0000u)  // 2^-25
    half = round_off((size & 0x7f'ffffu) | 0x80'0000u, 126 - (size >> 23));
  return static_cast<std::uint16_t>(sign | half);
}

constexpr float half_value(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16, size = half & 0x7fffu;
  if (size >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f80'0000u | size << 13);
  if (size >= 0x400u) return std::bit_cast<float>(sign | (0x3800'0000u + (size << 13)));
  const float subnormal = static_cast<float>(size) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

constexpr std::uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fff'ffffu) > 0x7f80'0000u;
  return static_cast<std::uint16_t>(nan ? bits >> 16 | 0x40u : round_off(bits, 16));
}

}  // namespace detail

/// The binary16 format of IEEE 754: 11 bits of significand, from 2^-24 to 65504.
/// Units:   conversion from float rounds to nearest, ties to even; 65520 and above become infinity;
///          a NaN becomes a quiet NaN. Conversion to float is exact.
/// Source:  IEEE Std 754-2019, 3.4 and 4.3.1.
struct half {
  std::uint16_t bits = 0;

  constexpr half() = default;
  constexpr explicit half(float value) : bits(detail::half_bits(value)) {}
  constexpr explicit operator float() const { return detail::half_value(bits); }
  static constexpr half from_bits(std::uint16_t bits) {
    half made;
    made.bits = bits;
    return made;
  }
};

/// The upper 16 bits of a float: 8 bits of significand and the range of float.
/// Units:   conversion from float rounds to nearest, ties to even; values above the largest number
///          become infinity; a NaN becomes a quiet NaN. Conversion to float is exact.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits(detail::bfloat16_bits(value)) {}
  constexpr explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 made;
    made.bits = bits;
    return made;
  }
};

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);

}  // namespace wye
