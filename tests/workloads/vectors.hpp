#pragma once
/// Shared by the tests of reductions: elements of each type, shapes, and the comparison of bits.
#include <wye/base/half.hpp>
#include <wye/device/schema.hpp>

#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>

#include "legs.hpp"

namespace wye::test {

/// The type of sums of `T`.
template <class T>
using Sum = std::conditional_t<sizeof(T) == 2, float, T>;

/// Calls `f(T{})` for each type of elements.
template <class F>
void for_float_types(const F& f) {
  f(float{});
  f(half{});
  f(bfloat16{});
}
template <class F>
void for_element_types(const F& f) {
  for_float_types(f);
  f(std::int32_t{});
  f(std::uint32_t{});
  f(std::uint64_t{});
}

/// `count` elements: numbers between -1 and 1, or integers of any bits.
template <class T>
std::vector<T> elements(std::size_t count, std::uint32_t seed) {
  if constexpr (std::is_integral_v<T>) {
    std::mt19937_64 random(seed);
    std::vector<T> made(count);
    for (T& element : made) element = static_cast<T>(random());
    return made;
  } else {
    return of<T>(numbers(count, seed));
  }
}

/// `count` elements, many of which are equal: both zeros, the extreme values, infinities and,
/// unless `numbers_only`, NaN.
template <class T>
std::vector<T> equal_elements(std::size_t count, std::uint32_t seed, bool numbers_only = false) {
  std::vector<T> list;
  if constexpr (std::is_integral_v<T>) {
    list = {T(0),
            T(1),
            T(-1),
            std::numeric_limits<T>::min(),
            std::numeric_limits<T>::max(),
            static_cast<T>(std::numeric_limits<T>::max() / 2 + 1)};
  } else {
    list = of<T>({0.0f, -0.0f, 1.0f, -1.0f, -infinity, infinity, undefined, -undefined, 6e-8f, -6e-8f});
    if (numbers_only) list.resize(4);
  }
  std::mt19937 random(seed);
  std::vector<T> made(count);
  for (T& element : made) element = list[random() % list.size()];
  return made;
}

/// Elements that every job must overwrite.
template <class T>
std::vector<T> poison(std::size_t count) {
  std::vector<T> made(count);
  if (count != 0) std::memset(static_cast<void*>(made.data()), 0xa5, count * sizeof(T));
  return made;
}

template <class T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Rows and columns: of one piece with each number of lanes, of several pieces, and beside the
/// limits.
struct RowShape {
  std::size_t rows, columns;
};
inline constexpr RowShape row_shapes[] = {
    {1, 1},   {1000, 1}, {513, 2},   {300, 3},   {257, 5},   {65, 63},   {3, 255},    {3, 256},
    {2, 257}, {9, 1000}, {2, 10001}, {2, 65535}, {1, 65536}, {2, 65537}, {1, 131073}, {2, 200001}};

inline constexpr RowShape few_row_shapes[] = {{3, 1}, {40, 3}, {33, 127}, {5, 1001}, {3, 65537}};

/// The documented bound of a sum of `n` terms whose sizes have the sum `sizes`. GPUs may take terms
/// below 2^-126 for zeros.
inline double bound_of_sum(std::size_t n, double sizes) {
  const auto count = static_cast<double>(n);
  return (128 + 2 * std::log2(std::max(count, 1.0))) * 0x1p-24 * sizes + count * 0x1p-126;
}

/// A bound of float results that are then rounded to `T`, near `exact`. GPUs may take results below
/// 2^-126 for zeros.
template <class T>
double with_rounding(double bound, double exact) {
  const double unit = std::is_same_v<T, half> ? 0x1p-11 : std::is_same_v<T, bfloat16> ? 0x1p-8 : 0;
  return bound + unit * (std::abs(exact) + bound) + (std::is_same_v<T, half> ? 0x1p-25 : 1e-37);
}

/// Returns rounded sums of elements.
template <class T>
std::vector<T> sums_of(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> sums;
  for (std::size_t i = 0; i < a.size(); ++i)
    sums.push_back(T(static_cast<float>(a[i]) + static_cast<float>(b[i])));
  return sums;
}

/// Calls `f(T{})` for the type of floats that `number` selects.
template <class F>
void for_float_type(std::uint32_t number, const F& f) {
  std::uint32_t of_type = 0;
  for_float_types([&](auto type) {
    if (of_type++ == number % 3) f(type);
  });
}

}  // namespace wye::test
