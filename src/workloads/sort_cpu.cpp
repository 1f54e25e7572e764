#include "per_target.hpp"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>

#include "cpu.hpp"
#include "distribution.hpp"
#include "keys.hpp"

#ifndef WYE_WORKLOADS_DIGIT
#define WYE_WORKLOADS_DIGIT
namespace wye::inline v0::workloads::cpu {
/// A number made of a key k: ((k ^ flip) - low >> shift) & mask.
template <class Key>
struct Digit {
  Key flip;
  Key low;
  Key mask;
  int shift;
};
}  // namespace wye::workloads::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T, class Key = hn::TFromD<D>>
std::size_t range_part(D d, const T* x, std::size_t i, std::size_t n, Key flip, Key& least, Key& most) {
  const auto flips = hn::Set(d, flip);
  auto low = hn::Set(d, least), high = hn::Set(d, most);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto keys = hn::Xor(flips, keys_at(d, x + i));
    low = hn::Min(low, keys);
    high = hn::Max(high, keys);
  }
  least = hn::GetLane(hn::MinOfLanes(d, low));
  most = hn::GetLane(hn::MaxOfLanes(d, high));
  return i;
}

/// Finds the smallest and the largest key.
template <class Key, class T>
void find_range(const T* x, std::size_t n, Key flip, Key& least, Key& most) {
  least = ~Key{0}, most = 0;
  const std::size_t done = range_part(hn::ScalableTag<Key>(), x, 0, n, flip, least, most);
  range_part(hn::CappedTag<Key, 1>(), x, done, n, flip, least, most);
}

template <class D, class T, class Key = hn::TFromD<D>>
std::size_t digits_part(D d, const T* x, std::size_t i, std::size_t n, Digit<Key> digit, Key* digits) {
  const auto flips = hn::Set(d, digit.flip), low = hn::Set(d, digit.low), mask = hn::Set(d, digit.mask);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto keys = hn::Sub(hn::Xor(flips, keys_at(d, x + i)), low);
    hn::StoreU(hn::And(hn::ShiftRightSame(keys, digit.shift), mask), d, digits + i);
  }
  return i;
}

template <class Key, class T>
void find_digits(const T* x, std::size_t n, Digit<Key> digit, Key* digits) {
  const std::size_t done = digits_part(hn::ScalableTag<Key>(), x, 0, n, digit, digits);
  digits_part(hn::CappedTag<Key, 1>(), x, done, n, digit, digits);
}

/// Copies elements. Returns whether all of them are finite, and none is -0.
template <class D>
std::size_t copy_part(D d, const float* x, std::size_t i, std::size_t n, float* to, bool& is_plain) {
  const hn::RebindToFloat<D> floats;
  const auto sign = hn::Set(d, 0x8000'0000u), twice_infinity = hn::Set(d, 0xff00'0000u);
  auto others = hn::Ne(sign, sign);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto bits = bits_at(d, x + i);
    others = hn::Or(others, hn::Or(hn::Eq(bits, sign), hn::Not(hn::Lt(hn::Add(bits, bits), twice_infinity))));
    hn::StoreU(hn::BitCast(floats, bits), floats, to + i);
  }
  is_plain = is_plain && hn::AllFalse(d, others);
  return i;
}
bool copy_plain(const float* x, std::size_t n, float* to) {
  bool is_plain = true;
  const std::size_t done = copy_part(hn::ScalableTag<std::uint32_t>(), x, 0, n, to, is_plain);
  copy_part(hn::CappedTag<std::uint32_t, 1>(), x, done, n, to, is_plain);
  return is_plain;
}

void range_float(const float* x, std::size_t n, std::uint32_t flip, std::uint32_t& least,
                 std::uint32_t& most) {
  find_range(x, n, flip, least, most);
}
void digits_float(const float* x, std::size_t n, Digit<std::uint32_t> digit, std::uint32_t* digits) {
  find_digits(x, n, digit, digits);
}
void distribute_float(const Distribution<float, std::uint32_t>& from) { distribute(from); }
void range_half(const half* x, std::size_t n, std::uint32_t flip, std::uint32_t& least, std::uint32_t& most) {
  find_range(x, n, flip, least, most);
}
void digits_half(const half* x, std::size_t n, Digit<std::uint32_t> digit, std::uint32_t* digits) {
  find_digits(x, n, digit, digits);
}
void distribute_half(const Distribution<half, std::uint32_t>& from) { distribute(from); }
void range_bfloat16(const bfloat16* x, std::size_t n, std::uint32_t flip, std::uint32_t& least,
                    std::uint32_t& most) {
  find_range(x, n, flip, least, most);
}
void digits_bfloat16(const bfloat16* x, std::size_t n, Digit<std::uint32_t> digit, std::uint32_t* digits) {
  find_digits(x, n, digit, digits);
}
void distribute_bfloat16(const Distribution<bfloat16, std::uint32_t>& from) { distribute(from); }
void range_word(const std::uint32_t* x, std::size_t n, std::uint32_t flip, std::uint32_t& least,
                std::uint32_t& most) {
  find_range(x, n, flip, least, most);
}
void digits_word(const std::uint32_t* x, std::size_t n, Digit<std::uint32_t> digit, std::uint32_t* digits) {
  find_digits(x, n, digit, digits);
}
void distribute_word(const Distribution<std::uint32_t, std::uint32_t>& from) { distribute(from); }
void range_long(const std::uint64_t* x, std::size_t n, std::uint64_t flip, std::uint64_t& least,
                std::uint64_t& most) {
  find_range(x, n, flip, least, most);
}
void digits_long(const std::uint64_t* x, std::size_t n, Digit<std::uint64_t> digit, std::uint64_t* digits) {
  find_digits(x, n, digit, digits);
}
void distribute_long(const Distribution<std::uint64_t, std::uint64_t>& from) { distribute(from); }

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

/// The longest row that one thread sorts at once, in its caches. Longer rows are distributed to
/// buckets first.
constexpr std::uint32_t longest_line = 32768;

HWY_EXPORT(range_float);
HWY_EXPORT(range_half);
HWY_EXPORT(range_bfloat16);
HWY_EXPORT(range_word);
HWY_EXPORT(range_long);
HWY_EXPORT(digits_float);
HWY_EXPORT(digits_half);
HWY_EXPORT(digits_bfloat16);
HWY_EXPORT(digits_word);
HWY_EXPORT(digits_long);
HWY_EXPORT(distribute_float);
HWY_EXPORT(distribute_half);
HWY_EXPORT(distribute_bfloat16);
HWY_EXPORT(distribute_word);
HWY_EXPORT(distribute_long);
HWY_EXPORT(copy_plain);

/// The smallest and the largest key of some elements.
template <class Key>
struct KeyRange {
  Key least;
  Key most;
};

template <class T>
KeyRange<KeyOf<T>> range_of(const T* x, std::size_t n, std::uint32_t flip) {
  KeyRange<KeyOf<T>> range{};
  const KeyOf<T> all = wide_flip<T>(flip);
  if constexpr (std::is_same_v<T, float>)
    HWY_DYNAMIC_DISPATCH(range_float)(x, n, all, range.least, range.most);
  else if constexpr (std::is_same_v<T, half>)
    HWY_DYNAMIC_DISPATCH(range_half)(x, n, all, range.least, range.most);
  else if constexpr (std::is_same_v<T, bfloat16>)
    HWY_DYNAMIC_DISPATCH(range_bfloat16)(x, n, all, range.least, range.most);
  else if constexpr (sizeof(T) == 4)
    HWY_DYNAMIC_DISPATCH(range_word)
  (reinterpret_cast<const std::uint32_t*>(x), n, all, range.least, range.most);
  else HWY_DYNAMIC_DISPATCH(range_long)(x, n, all, range.least, range.most);
  return range;
}

template <class T>
void find_digits(const T* x, std::size_t n, Digit<KeyOf<T>> digit, KeyOf<T>* digits) {
  if constexpr (std::is_same_v<T, float>)
    HWY_DYNAMIC_DISPATCH(digits_float)(x, n, digit, digits);
  else if constexpr (std::is_same_v<T, half>)
    HWY_DYNAMIC_DISPATCH(digits_half)(x, n, digit, digits);
  else if constexpr (std::is_same_v<T, bfloat16>)
    HWY_DYNAMIC_DISPATCH(digits_bfloat16)(x, n, digit, digits);
  else if constexpr (sizeof(T) == 4)
    HWY_DYNAMIC_DISPATCH(digits_word)(reinterpret_cast<const std::uint32_t*>(x), n, digit, digits);
  else
    HWY_DYNAMIC_DISPATCH(digits_long)(x, n, digit, digits);
}

/// Calls `f(i, digit)` for each element. Computes the digits of a block of elements at a time.
template <class T, class F>
void for_digits(const T* x, std::size_t n, const Digit<KeyOf<T>>& digit, F f) {
  constexpr std::size_t block = 512;
  KeyOf<T> digits[block];
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t count = std::min(block, n - first);
    find_digits(x + first, count, digit, digits);
    for (std::size_t i = 0; i < count; ++i) f(first + i, static_cast<std::size_t>(digits[i]));
  }
}

/// Keys with the values to be moved with them. Without values, the pointer is null.
template <class T>
struct Line {
  T* keys;
  std::uint32_t* values;

  Line from(std::size_t i) const { return {keys + i, values != nullptr ? values + i : nullptr}; }
};
/// The same to read. Values that are missing are the columns from `column` on.
template <class T>
struct ConstLine {
  const T* keys;
  const std::uint32_t* values;
  std::uint32_t column;

  std::uint32_t value(std::size_t i) const {
    return values != nullptr ? values[i] : column + static_cast<std::uint32_t>(i);
  }
};

template <class T>
void copy_line(ConstLine<T> from, std::size_t n, Line<T> to) {
  std::copy_n(from.keys, n, to.keys);
  if (to.values != nullptr)
    for (std::size_t i = 0; i < n; ++i) to.values[i] = from.value(i);
}

/// Moves each element to the next place of its digit.
template <class T>
void move_by_digits(ConstLine<T> from, std::size_t n, Line<T> to, std::uint32_t* next,
                    const Digit<KeyOf<T>>& digit) {
  if (to.values == nullptr) {
    for_digits(from.keys, n, digit, [&](std::size_t i, std::size_t d) { to.keys[next[d]++] = from.keys[i]; });
    return;
  }
  for_digits(from.keys, n, digit, [&](std::size_t i, std::size_t d) {
    const std::uint32_t place = next[d]++;
    to.keys[place] = from.keys[i];
    to.values[place] = from.value(i);
  });
}

/// The bits of a word below those of a key of 16 bits.
template <class T>
inline constexpr int bits_below = sizeof(T) == 2 ? 16 : 0;

/// Memory of a line, which grows. The next line does not keep the elements of the last one.
template <class T>
class LineMemory {
 public:
  Line<T> line(std::size_t n, bool has_values) {
    if (size_ < n) {
      keys_ = std::make_unique_for_overwrite<T[]>(n);
      values_ = nullptr;
      size_ = n;
    }
    if (has_values && values_ == nullptr) values_ = std::make_unique_for_overwrite<std::uint32_t[]>(size_);
    return {keys_.get(), has_values ? values_.get() : nullptr};
  }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<T[]> keys_;
  std::unique_ptr<std::uint32_t[]> values_;
};

/// Sorts lines. Reuses the memory that it needs. Lives on one thread, in one call of a host
/// function.
template <class T>
class LineSorter {
 public:
  explicit LineSorter(std::uint32_t flip) : flip_(flip) {}

  /// Sorts by insertion if the line is short, and by vqsort if its keys have more than a digit and
  /// no values. Otherwise sorts by the digits of the difference to the smallest key, from the
  /// lowest on.
  void sort(ConstLine<T> from, std::size_t n, Line<T> to) {
    if (n <= 32) return insert(from, n, to);
    const KeyRange<Key> range = range_of(from.keys, n, flip_);
    const Key low = range.least >> bits_below<T> << bits_below<T>;
    const int width = static_cast<int>(std::bit_width((range.most - low) >> bits_below<T>));
    if (width == 0) return copy_line(from, n, to);
    const int most = n < 4096 || n > 262144 ? 8 : longest_digit;
    const int passes = (width + most - 1) / most, digit = (width + passes - 1) / passes;
    if constexpr (sizeof(T) > 2)
      if (passes > 1 && to.values == nullptr && sort_keys([=](auto f) { f(from, n); }, to.keys)) return;
    const Line<T> other = other_.line(passes > 1 ? n : 0, to.values != nullptr);
    for (int pass = 0; pass < passes; ++pass) {
      const Line<T> target = (passes - 1 - pass) % 2 == 0 ? to : other;
      sort_by(from, n, target, low, bits_below<T> + pass * digit, digit);
      from = {target.keys, target.values, 0};
    }
  }

  /// Sorts a line of n elements, for whose pieces `for_pieces` calls its argument.
  template <class ForPieces>
  void sort_pieces(ForPieces for_pieces, std::size_t n, Line<T> to) {
    if constexpr (sizeof(T) > 2)
      if (to.values == nullptr && sort_keys(for_pieces, to.keys)) return;
    const Line<T> line = some_.line(n, to.values != nullptr);
    std::size_t first = 0;
    for_pieces([&](ConstLine<T> piece, std::size_t size) {
      copy_line(piece, size, line.from(first));
      first += size;
    });
    sort({line.keys, line.values, 0}, n, to);
  }

 private:
  using Key = KeyOf<T>;
  static constexpr int longest_digit = 11;
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  void insert(ConstLine<T> from, std::size_t n, Line<T> to) const {
    for (std::size_t i = 0; i < n; ++i) {
      const T element = from.keys[i];
      const Key key = key_of(element, flip_);
      std::size_t j = i;
      for (; j > 0 && key_of(to.keys[j - 1], flip_) > key; --j) {
        to.keys[j] = to.keys[j - 1];
        if (to.values != nullptr) to.values[j] = to.values[j - 1];
      }
      to.keys[j] = element;
      if (to.values != nullptr) to.values[j] = from.value(i);
    }
  }

  /// Sorts by Highway's vqsort, which is not stable, if equal elements have the same bits: there is
  /// no -0 and no NaN. Its version 1.0 does not sort infinities, which therefore are the largest
  /// finite numbers until the others are sorted.
  template <class ForPieces>
  bool sort_keys(ForPieces for_pieces, T* to) {
    const bool descending = flip_ == key_flip<T>(true);
    [[maybe_unused]] std::array<std::size_t, 2> infinities{};  // below and above zero
    bool has_order = true;
    std::size_t n = 0;
    for_pieces([&](ConstLine<T> piece, std::size_t size) {
      if constexpr (!std::is_same_v<T, float>)
        std::copy_n(piece.keys, size, to + n);
      else if (has_order && !HWY_DYNAMIC_DISPATCH(copy_plain)(piece.keys, size, to + n))
        has_order = replace_infinities({to + n, size}, infinities);
      n += size;
    });
    if (!has_order) return false;
    if (descending)
      sorter_(to, n, hwy::SortDescending());
    else
      sorter_(to, n, hwy::SortAscending());
    if constexpr (std::is_same_v<T, float>) {
      const float first = descending ? infinity : -infinity;
      std::fill_n(to, infinities[descending], first);
      std::fill_n(to + n - infinities[!descending], infinities[!descending], -first);
    }
    return true;
  }

  /// Replaces infinities by the largest finite numbers, and counts them. Returns whether equal
  /// elements have the same bits.
  static bool replace_infinities(std::span<float> elements, std::array<std::size_t, 2>& infinities) {
    for (float& x : elements) {
      if (std::isnan(x) || (x == 0.0f && std::signbit(x))) return false;
      if (!std::isinf(x)) continue;
      ++infinities[x > 0];
      x = std::copysign(std::numeric_limits<float>::max(), x);
    }
    return true;
  }

  void sort_by(ConstLine<T> from, std::size_t n, Line<T> to, Key low, int shift, int bits) {
    const Key mask = (Key{1} << bits) - 1;
    const Digit<Key> digit{.flip = wide_flip<T>(flip_), .low = low, .mask = mask, .shift = shift};
    std::fill_n(next_.begin(), mask + 1, 0u);
    for_digits(from.keys, n, digit, [&](std::size_t, std::size_t d) { ++next_[d]; });
    std::uint32_t sum = 0;
    for (std::size_t d = 0; d <= mask; ++d) {
      const std::uint32_t count = next_[d];
      next_[d] = sum;
      sum += count;
    }
    move_by_digits(from, n, to, next_.data(), digit);
  }

  std::uint32_t flip_;
  std::array<std::uint32_t, std::size_t{1} << longest_digit> next_{};
  LineMemory<T> some_, other_;
  hwy::Sorter sorter_;
};

/// The least keys of buckets, of which the first one has none.
template <class T>
using Limits = std::array<KeyOf<T>, buckets>;

/// Returns the limits of buckets of about equal size, which a sample of a row gives.
template <class T>
Limits<T> find_limits(const T* row, std::size_t columns, std::uint32_t flip) {
  constexpr std::size_t of_bucket = 4;  // elements of the sample
  std::array<KeyOf<T>, buckets * of_bucket> sample;
  for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = key_of(row[columns * i / sample.size()], flip);
  hwy::Sorter()(sample.data(), sample.size(), hwy::SortAscending());
  Limits<T> limits;
  for (std::size_t i = 0; i < buckets; ++i) limits[i] = sample[i * of_bucket];
  return limits;
}

template <class T>
void distribute(const Distribution<T, KeyOf<T>>& from) {
  if constexpr (std::is_same_v<T, float>)
    HWY_DYNAMIC_DISPATCH(distribute_float)(from);
  else if constexpr (std::is_same_v<T, half>)
    HWY_DYNAMIC_DISPATCH(distribute_half)(from);
  else if constexpr (std::is_same_v<T, bfloat16>)
    HWY_DYNAMIC_DISPATCH(distribute_bfloat16)(from);
  else if constexpr (sizeof(T) == 4)
    HWY_DYNAMIC_DISPATCH(distribute_word)
  ({reinterpret_cast<const std::uint32_t*>(from.keys), from.values, from.column, from.size, from.flip,
    from.limits, reinterpret_cast<std::uint32_t*>(from.keys_to), from.values_to,
    reinterpret_cast<std::uint32_t*>(from.some_keys), from.some_values});
  else HWY_DYNAMIC_DISPATCH(distribute_long)(from);
}

/// Segments of rows are distributed one by one, in the caches.
constexpr std::uint64_t tiles_of_segment = 64, segment_size = tiles_of_segment * sorted_tile;

std::uint64_t segments_of(const SortShape& shape) {
  return (shape.tiles + tiles_of_segment - 1) / tiles_of_segment;
}

/// Calls `f(row, segment, first column, size)` for the segments that begin in a range.
template <class F>
void for_segments(Range range, const SortShape& shape, F f) {
  for_row_tiles(range, shape, [&](RowTiles part) {
    for (std::uint64_t i = (part.first + tiles_of_segment - 1) / tiles_of_segment;
         i * tiles_of_segment < part.last; ++i)
      f(part.row, i, i * segment_size,
        std::min<std::uint64_t>(segment_size, shape.columns - i * segment_size));
  });
}

/// Return the index of the first places of the buckets in a segment, of the limits of a row, and of
/// the first places of the buckets in the sorted row. The memory has places for each tile, of which
/// a longer row has more than 16.
std::uint64_t starts_of(std::uint64_t row, std::uint64_t segment, const SortShape& shape) {
  return (row * shape.tiles + segment) * buckets;
}
std::uint64_t limits_of(std::uint64_t row, const SortShape& shape) {
  return ((row + 1) * shape.tiles - 2) * buckets;
}
std::uint64_t firsts_of(std::uint64_t row, const SortShape& shape) {
  return (std::uint64_t{shape.rows} * shape.tiles + row) * buckets;
}

template <class T>
Limits<T> limits_at(const std::uint32_t* words) {
  Limits<T> limits;
  std::memcpy(limits.data(), words, sizeof(limits));
  return limits;
}

bool is_last(const SortShape& shape) { return shape.shift + 8 == shape.bits; }

template <class T>
Line<T> line_at(std::span<T> keys, std::span<std::uint32_t> values, std::uint64_t first) {
  return {keys.data() + first, values.empty() ? nullptr : values.data() + first};
}
template <class T>
ConstLine<T> line_at(std::span<const T> keys, std::span<const std::uint32_t> values, std::uint64_t first,
                     std::uint64_t column) {
  return {keys.data() + first, values.empty() ? nullptr : values.data() + first,
          static_cast<std::uint32_t>(column)};
}

}  // namespace

/// First finds the limits of rows. After segments were distributed, finds their parts.
template <class T, bool has_values>
void sort_count(Range range, std::span<const T> keys, std::span<std::uint32_t> counts, SortShape shape) {
  if (shape.columns <= longest_line) return;
  if (shape.shift == 0)
    for_row_tiles(range, shape, [&](RowTiles part) {
      if (part.first != 0) return;
      const Limits<T> limits = find_limits(keys.data() + part.row * shape.columns, shape.columns, shape.flip);
      std::memcpy(counts.data() + limits_of(part.row, shape), limits.data(), sizeof(limits));
    });
  if (!is_last(shape)) return;
  for_segments(range, shape,
               [&](std::uint64_t row, std::uint64_t i, std::uint64_t first, std::uint64_t size) {
                 const T* const segment = keys.data() + row * shape.columns + first;
                 const Limits<T> limits = limits_at<T>(counts.data() + limits_of(row, shape));
                 std::uint32_t* const starts = counts.data() + starts_of(row, i, shape);
                 std::fill_n(starts, buckets, 0u);
                 // A step of all searches at a time, as each one waits for memory.
                 for (std::uint32_t step = segment_size; step != 0; step /= 2)
                   for (std::size_t bucket = part_length(0, has_values); bucket < buckets;
                        bucket += part_length(bucket, has_values)) {
                     const std::uint32_t end = starts[bucket] + step;
                     if (end <= size && key_of(segment[end - 1], shape.flip) < limits[bucket])
                       starts[bucket] = end;
                   }
               });
}

void sort_scan(Range range, std::span<std::uint32_t> counts, SortShape shape) {
  if (shape.columns <= longest_line || !is_last(shape)) return;
  const std::uint64_t items_of_row = shape.scan_items_of_row();
  const Range items = below(range, shape.rows * items_of_row);
  for (std::uint64_t row = items.first / items_of_row; row < items.last / items_of_row; ++row) {
    std::uint32_t* const firsts = counts.data() + firsts_of(row, shape);
    std::fill_n(firsts, buckets, 0u);
    for (std::uint64_t i = 0; i < segments_of(shape); ++i)
      for (std::size_t bucket = 0; bucket < buckets; ++bucket)
        firsts[bucket] += counts[starts_of(row, i, shape) + bucket];
  }
}

namespace {

/// Sorts the rows of tiles.
template <class T>
void sort_rows(Range range, std::span<const T> keys, std::span<const std::uint32_t> values,
               std::span<T> sorted_keys, std::span<std::uint32_t> sorted_values, const SortShape& shape) {
  LineSorter<T> sorter(shape.flip);
  for_rows(range, shape, [&](std::uint64_t row) {
    const std::uint64_t first = row * shape.columns;
    sorter.sort(line_at(keys, values, first, 0), shape.columns, line_at(sorted_keys, sorted_values, first));
  });
}

/// The first pass of longer rows: sorts lines, and distributes the elements of segments to buckets.
template <class T>
void sort_first(Range range, std::span<const T> keys, std::span<const std::uint32_t> values,
                std::span<T> sorted_keys, std::span<std::uint32_t> sorted_values,
                std::span<const std::uint32_t> bases, const SortShape& shape) {
  if (shape.columns <= longest_line) {
    LineSorter<T> sorter(shape.flip);
    for_row_tiles(range, shape, [&](RowTiles part) {
      if (part.first != 0) return;
      const std::uint64_t first = part.row * shape.columns;
      sorter.sort(line_at(keys, values, first, 0), shape.columns, line_at(sorted_keys, sorted_values, first));
    });
    return;
  }
  LineMemory<T> memory;
  for_segments(range, shape, [&](std::uint64_t row, std::uint64_t, std::uint64_t first, std::uint64_t size) {
    const std::uint64_t begin = row * shape.columns + first;
    const Limits<T> limits = limits_at<T>(bases.data() + limits_of(row, shape));
    const ConstLine<T> line = line_at(keys, values, begin, first);
    const Line<T> to = line_at(sorted_keys, sorted_values, begin);
    const Line<T> some = memory.line(3 * segment_size, to.values != nullptr);
    distribute<T>({.keys = line.keys,
                   .values = line.values,
                   .column = line.column,
                   .size = size,
                   .flip = wide_flip<T>(shape.flip),
                   .limits = limits.data(),
                   .keys_to = to.keys,
                   .values_to = to.values,
                   .some_keys = some.keys,
                   .some_values = some.values});
  });
}

/// The last pass of longer rows: copies lines, and sorts the buckets that begin in the range.
template <class T>
void sort_last(Range range, std::span<const T> keys, std::span<const std::uint32_t> values,
               std::span<T> sorted_keys, std::span<std::uint32_t> sorted_values,
               std::span<const std::uint32_t> bases, const SortShape& shape) {
  LineSorter<T> sorter(shape.flip);
  LineMemory<T> memory;
  for_row_tiles(range, shape, [&](RowTiles part) {
    const std::uint64_t begin = part.row * shape.columns, target = part.row * shape.keep;
    if (shape.columns <= longest_line) {
      if (part.first == 0)
        copy_line(line_at(keys, values, begin, 0), shape.keep, line_at(sorted_keys, sorted_values, target));
      return;
    }
    const std::uint64_t first = part.first * sorted_tile, last = part.last * sorted_tile;
    const std::uint32_t* const firsts = bases.data() + firsts_of(part.row, shape);
    for (std::size_t bucket = 0, next = 0; bucket < buckets; bucket = next) {
      next = bucket + part_length(bucket, !sorted_values.empty());
      const std::uint64_t from = firsts[bucket], to = next < buckets ? firsts[next] : shape.columns;
      if (from == to || from < first || from >= last || from >= shape.keep) continue;
      const auto for_pieces = [&](auto f) {
        for (std::uint64_t i = 0; i < segments_of(shape); ++i) {
          const std::uint32_t* const starts = bases.data() + starts_of(part.row, i, shape);
          const std::uint64_t segment = i * segment_size, rest = shape.columns - segment;
          const std::uint64_t end = next < buckets ? starts[next] : std::min(segment_size, rest);
          f(line_at(keys, values, begin + segment + starts[bucket], 0), end - starts[bucket]);
        }
      };
      const Line<T> result = line_at(sorted_keys, sorted_values, target + from);
      if (to <= shape.keep) {
        sorter.sort_pieces(for_pieces, to - from, result);
        continue;
      }
      const Line<T> all = memory.line(to - from, result.values != nullptr);
      sorter.sort_pieces(for_pieces, to - from, all);
      copy_line({all.keys, all.values, 0}, shape.keep - from, result);
    }
  });
}

}  // namespace

template <class T>
void sort_scatter(Range range, std::span<const T> keys, std::span<const std::uint32_t> values,
                  std::span<T> sorted_keys, std::span<std::uint32_t> sorted_values,
                  std::span<const std::uint32_t> bases, SortShape shape) {
  if (bases.empty())
    sort_rows(range, keys, values, sorted_keys, sorted_values, shape);
  else if (shape.shift == 0)
    sort_first(range, keys, values, sorted_keys, sorted_values, bases, shape);
  else if (is_last(shape))
    sort_last(range, keys, values, sorted_keys, sorted_values, bases, shape);
}

#define WYE_SORT(T)                                                                                   \
  template void sort_count<T, false>(Range, std::span<const T>, std::span<std::uint32_t>, SortShape); \
  template void sort_count<T, true>(Range, std::span<const T>, std::span<std::uint32_t>, SortShape);  \
  template void sort_scatter(Range, std::span<const T>, std::span<const std::uint32_t>, std::span<T>, \
                             std::span<std::uint32_t>, std::span<const std::uint32_t>, SortShape);
WYE_SORT(float)
WYE_SORT(half)
WYE_SORT(bfloat16)
WYE_SORT(std::int32_t)
WYE_SORT(std::uint32_t)
WYE_SORT(std::uint64_t)
#undef WYE_SORT

}  // namespace wye::workloads::cpu
#endif
