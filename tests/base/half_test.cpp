#include <wye/base/half.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "support/catch.hpp"

using wye::bfloat16;
using wye::half;

namespace {

/// Returns the number nearest to `value`, by a search of all. The finite numbers of 16 bits have
/// the order of their bits.
template <class T>
std::uint16_t nearest(double value) {
  std::uint32_t low = 0, high = T(std::numeric_limits<float>::infinity()).bits;
  const auto at = [](std::uint32_t bits) {
    const double number = static_cast<float>(T::from_bits(static_cast<std::uint16_t>(bits)));
    if (!std::isinf(number)) return number;
    // The next number if the format had one more exponent.
    const double last = static_cast<float>(T::from_bits(static_cast<std::uint16_t>(bits - 1)));
    return 2 * last -
           static_cast<double>(static_cast<float>(T::from_bits(static_cast<std::uint16_t>(bits - 2))));
  };
  const double size = std::abs(value);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (size >= at(high)) return static_cast<std::uint16_t>(sign | high);
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (at(middle) <= size ? low : high) = middle;
  }
  const double below = size - at(low), above = at(high) - size;
  const std::uint32_t bits = below < above ? low : above < below ? high : low % 2 == 0 ? low : high;
  return static_cast<std::uint16_t>(sign | bits);
}

template <class T>
void rounds_to_the_nearest(float value) {
  const std::uint16_t bits = T(value).bits, exact = nearest<T>(value);
  if (bits == exact) return;
  INFO(value << ": " << bits << " instead of " << exact);
  CHECK(bits == exact);
}

template <class T>
void comes_back() {
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const T number = T::from_bits(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(number);
    if (std::isnan(value) ? !std::isnan(static_cast<float>(T(value))) : T(value).bits != bits) ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every number of 16 bits survives a conversion to float and back", "[base]") {
  comes_back<half>();
  comes_back<bfloat16>();
}

TEST_CASE("half and bfloat16 have the numbers of their formats", "[base]") {
  STATIC_REQUIRE(half(1.0f).bits == 0x3c00);
  STATIC_REQUIRE(half(-2.0f).bits == 0xc000);
  STATIC_REQUIRE(static_cast<float>(half::from_bits(1)) == 0x1p-24f);
  STATIC_REQUIRE(static_cast<float>(half::from_bits(0x7bff)) == 65504.0f);
  STATIC_REQUIRE(half(65519.996f).bits == 0x7bff);
  STATIC_REQUIRE(half(65520.0f).bits == 0x7c00);
  STATIC_REQUIRE(half(0x1p-25f).bits == 0);
  STATIC_REQUIRE(half(0x1.000002p-25f).bits == 1);
  STATIC_REQUIRE(half(-0.0f).bits == 0x8000);
  STATIC_REQUIRE(bfloat16(1.0f).bits == 0x3f80);
  STATIC_REQUIRE(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  STATIC_REQUIRE(bfloat16(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(std::isnan(static_cast<float>(half(std::bit_cast<float>(0x7f80'0001u)))));
  CHECK(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0xff80'0001u)))));
}

TEST_CASE("float is rounded to the nearest number of 16 bits, ties to even", "[base]") {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    // All exponents are equally frequent. Half of the values lie exactly between two numbers, or
    // nearly so.
    auto bits = static_cast<std::uint32_t>(random());
    if ((bits & 0x7f80'0000u) == 0x7f80'0000u) continue;
    const auto value = std::bit_cast<float>(bits);
    rounds_to_the_nearest<bfloat16>(value);
    bits = (bits & 0x87ff'ffffu) + 0x3000'0000u;
    if (i % 2 == 0) bits = (bits & 0xffff'e000u) + 0x1000u + static_cast<std::uint32_t>(i / 2 % 3) - 1;
    rounds_to_the_nearest<half>(std::bit_cast<float>(bits));
    rounds_to_the_nearest<bfloat16>(std::bit_cast<float>((bits & 0xffff'0000u) | 0x8000u));
  }
}
