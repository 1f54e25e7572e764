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
/// grid. In a grid of two or three dimensions, `rows` is faster than a division for each item:
/// `for (const auto row : range.rows()) for (auto x : row.columns()) out[row.start + x] = x * row.y;`
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

  struct Row;
  class Rows;
  /// Returns the rows of the grid with items of this range. The first and the last may have only
  /// some of their columns in it; `HostOptions::tile` can exclude that.
  constexpr Rows rows() const;
};

/// The items of a range that are in one row of its grid: columns `first` to `last` - 1.
struct Range::Row {
  std::uint64_t y = 0, z = 0;
  std::uint64_t start = 0;  ///< the item in column 0; item `start + x` is in column x
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  constexpr Range columns() const { return {first, last, Extent3(last)}; }
};

/// Visits the rows of a range: `for (const Range::Row row : range.rows())`.
/// Threads: thread-compatible.
class Range::Rows {
 public:
  class iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    constexpr iterator() = default;
    constexpr explicit iterator(const Range& range) : range_(range) {
      if (range.size() == 0 || range.grid.x == 0) {
        range_.first = range_.last;
        return;
      }
      const std::uint64_t row = range.first / range.grid.x;
      row_.start = row * range.grid.x;
      row_.y = range.grid.y == 0 ? row : row % range.grid.y;
      row_.z = range.grid.y == 0 ? 0 : row / range.grid.y;
      set_columns();
    }
    constexpr Row operator*() const { return row_; }
    constexpr iterator& operator++() {
      range_.first = row_.start + row_.last;
      row_.start = range_.first;
      if (++row_.y == range_.grid.y) row_.y = 0, ++row_.z;
      set_columns();
      return *this;
    }
    constexpr iterator operator++(int) {
      iterator before = *this;
      return ++*this, before;
    }
    friend constexpr bool operator==(const iterator& a, const iterator& b) {
      return a.range_.first == b.range_.first;
    }
    friend constexpr bool operator==(const iterator& a, std::default_sentinel_t) {
      return a.range_.first == a.range_.last;
    }

   private:
    constexpr void set_columns() {
      row_.first = range_.first - row_.start;
      const std::uint64_t left = range_.last - row_.start;
      row_.last = left < range_.grid.x ? left : range_.grid.x;
    }

    Range range_{};  // its items from here on
    Row row_{};
  };

  constexpr explicit Rows(const Range& range) : range_(range) {}
  constexpr iterator begin() const { return iterator(range_); }
  constexpr std::default_sentinel_t end() const { return {}; }

 private:
  Range range_;
};

constexpr Range::Rows Range::rows() const { return Rows(*this); }

}  // namespace wye
