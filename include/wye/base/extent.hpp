#pragma once
/// Sizes of grids, and the ranges of items that host functions receive.
#include <wye/base/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace wye::inline v0 {

/// Width, height, depth, in items.
struct Extent3 {
  std::uint64_t x = 1;
  std::uint64_t y = 1;
  std::uint64_t z = 1;

  constexpr Extent3() = default;
  template <std::integral N>
  constexpr Extent3(N width) : x(static_cast<std::uint64_t>(width)) {}  // NOLINT: a count is a 1-D extent
  constexpr Extent3(std::uint64_t width, std::uint64_t height, std::uint64_t depth = 1)
      : x(width), y(height), z(depth) {}

  /// Returns x * y * z, or 2^64 - 1 if the product overflows.
  constexpr std::uint64_t count() const {
    if (x == 0 || y == 0 || z == 0) return 0;
    std::uint64_t xy = 0, xyz = 0;
    if (__builtin_mul_overflow(x, y, &xy) || __builtin_mul_overflow(xy, z, &xyz)) return ~std::uint64_t{0};
    return xyz;
  }
  friend constexpr bool operator==(const Extent3&, const Extent3&) = default;
};

/// Consecutive items of a grid in row-major order (x fastest). One call of a host function
/// processes one range. `for (std::uint64_t i : range)` visits the items; `range.grid` is the whole
/// grid.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  ///< one past the end
  Extent3 grid{};

  class iterator {
   public:
    using value_type = std::uint64_t;
    using difference_type = std::ptrdiff_t;
    constexpr iterator() = default;
    constexpr explicit iterator(std::uint64_t at) : at_(at) {}
    constexpr std::uint64_t operator*() const { return at_; }
    constexpr iterator& operator++() { return ++at_, *this; }
    constexpr iterator operator++(int) { return iterator(at_++); }
    friend constexpr bool operator==(iterator, iterator) = default;

   private:
    std::uint64_t at_ = 0;
  };
  constexpr iterator begin() const { return iterator(first); }
  constexpr iterator end() const { return iterator(last); }
  constexpr std::uint64_t size() const { return last - first; }
};

}  // namespace wye
