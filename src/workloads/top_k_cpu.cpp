#include "per_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "cpu.hpp"
#include "keys.hpp"

#ifndef WYE_WORKLOADS_TWO_RUNS
#define WYE_WORKLOADS_TWO_RUNS
namespace wye::inline v0::workloads::cpu {
/// Two runs of numbers of 32 bits. A run may go on with 0 after the largest number.
struct TwoRuns {
  std::uint32_t first[2] = {};
  std::uint32_t count[2] = {};
};
}  // namespace wye::workloads::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns the first place from `i` on whose elements are wanted. If there is none, returns the end
/// of the last vector.
template <class D, class T, class F>
std::size_t find_first(D d, const T* x, std::size_t i, std::size_t n, F is_wanted) {
  constexpr std::size_t line = 64 / sizeof(T), ahead = 32 * line;
  const std::size_t lanes = hn::Lanes(d);
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (std::size_t k = 0; k < 4 * lanes; k += line) hwy::Prefetch(x + i + ahead + k);
    const auto any = hn::Or(hn::Or(is_wanted(d, x + i), is_wanted(d, x + i + lanes)),
                            hn::Or(is_wanted(d, x + i + 2 * lanes), is_wanted(d, x + i + 3 * lanes)));
    if (!hn::AllFalse(d, any)) break;
  }
  for (; i + lanes <= n; i += lanes) {
    const auto found = hn::FindFirstTrue(d, is_wanted(d, x + i));
    if (found >= 0) return i + static_cast<std::size_t>(found);
  }
  return i;
}

template <class Key, class T, class F>
std::size_t find_first(const T* x, std::size_t i, std::size_t n, F is_wanted) {
  const hn::ScalableTag<Key> d;
  const std::size_t found = find_first(d, x, i, n, is_wanted);
  return found + hn::Lanes(d) <= n ? found : find_first(hn::CappedTag<Key, 1>(), x, found, n, is_wanted);
}

/// Returns the first place from `i` on whose bits are in one of the runs.
template <class T>
std::size_t find_in_runs(const T* x, std::size_t i, std::size_t n, const TwoRuns& runs) {
  return find_first<std::uint32_t>(x, i, n, [&](auto d, const T* from) HWY_ATTR {
    const auto bits = bits_at(d, from);
    return hn::Or(hn::Lt(hn::Sub(bits, hn::Set(d, runs.first[0])), hn::Set(d, runs.count[0])),
                  hn::Lt(hn::Sub(bits, hn::Set(d, runs.first[1])), hn::Set(d, runs.count[1])));
  });
}
std::size_t in_runs_float(const float* x, std::size_t i, std::size_t n, const TwoRuns& runs) {
  return find_in_runs(x, i, n, runs);
}
std::size_t in_runs_half(const std::uint16_t* x, std::size_t i, std::size_t n, const TwoRuns& runs) {
  return find_in_runs(x, i, n, runs);
}

/// Returns the first place from `i` on whose key is below `limit`.
template <class Key>
std::size_t find_below(const Key* x, std::size_t i, std::size_t n, Key flip, Key limit) {
  return find_first<Key>(x, i, n, [=](auto d, const Key* from) HWY_ATTR {
    return hn::Lt(hn::Xor(hn::Set(d, flip), hn::LoadU(d, from)), hn::Set(d, limit));
  });
}
std::size_t below_word(const std::uint32_t* x, std::size_t i, std::size_t n, std::uint32_t flip,
                       std::uint32_t limit) {
  return find_below(x, i, n, flip, limit);
}
std::size_t below_long(const std::uint64_t* x, std::size_t i, std::size_t n, std::uint64_t flip,
                       std::uint64_t limit) {
  return find_below(x, i, n, flip, limit);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(in_runs_float);
HWY_EXPORT(in_runs_half);
HWY_EXPORT(below_word);
HWY_EXPORT(below_long);

/// Returns the bits of floats whose keys are below a limit, which is the key of one of them. With
/// fewer instructions than a key needs, bits are compared with the ends of these runs: the sizes of
/// negative floats descend, and NaN of both signs has the largest key. Numbers of 16 bits are the
/// upper half of a float.
TwoRuns bits_below(std::uint32_t limit, bool descending, std::uint32_t infinity) {
  constexpr std::uint32_t zero = 0x8000'0000;  // its key, and the bits of -0
  const std::uint32_t negative_infinity = zero + infinity, after_infinity = negative_infinity + 1;
  if (!descending) {
    if (limit <= zero) return {{1 - limit}, {limit + negative_infinity}};
    return {{zero, 0}, {infinity + 1, std::min(limit - zero, infinity + 1)}};
  }
  const std::uint32_t above = ~limit;  // keys above this one
  if (above == ~0u) return {};
  if (above < zero) return {{after_infinity}, {0 - above - after_infinity}};
  return {{above - zero + 1, after_infinity}, {~above, 0 - after_infinity}};
}

/// Returns the first place from `i` on whose key is below `limit`, or the size of x.
template <class T>
std::size_t next_place_below(std::span<const T> x, std::size_t i, std::uint32_t flip, KeyOf<T> limit) {
  const KeyOf<T> all = wide_flip<T>(flip);
  if constexpr (std::is_same_v<T, float>)
    return HWY_DYNAMIC_DISPATCH(in_runs_float)(x.data(), i, x.size(),
                                               bits_below(limit, all != 0, 0x7f80'0000));
  else if constexpr (sizeof(T) == 2)
    return HWY_DYNAMIC_DISPATCH(in_runs_half)(
        reinterpret_cast<const std::uint16_t*>(x.data()), i, x.size(),
        bits_below(limit, all != 0, std::is_same_v<T, half> ? 0x7c00'0000 : 0x7f80'0000));
  else if constexpr (sizeof(T) == 4)
    return HWY_DYNAMIC_DISPATCH(below_word)(reinterpret_cast<const std::uint32_t*>(x.data()), i, x.size(),
                                            all, limit);
  else
    return HWY_DYNAMIC_DISPATCH(below_long)(x.data(), i, x.size(), all, limit);
}

template <class T>
struct Candidate {
  KeyOf<T> key;
  std::uint32_t index;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};

/// Collects the first candidates of a sequence in sorted order. Of equal ones, the smaller index is
/// first.
template <class T>
class Selection {
 public:
  explicit Selection(std::size_t count) : count_(count) {}
  void clear() { candidates_.clear(), limit_ = ~KeyOf<T>{0}, is_limited_ = false; }

  /// Adds a candidate with an index above all others.
  void add(KeyOf<T> key, std::uint32_t index) {
    if (is_limited_ && key >= limit_) return;
    candidates_.push_back({key, index});
    if (candidates_.size() >= 2 * count_ + 64) reduce();
  }
  /// Candidates with keys of this limit or above are not among the first. Unset: all may be.
  bool is_limited() const { return is_limited_; }
  KeyOf<T> limit() const { return limit_; }

  /// Keeps the first ones, in any order.
  std::vector<Candidate<T>>& reduce() {
    if (candidates_.size() >= count_ && count_ != 0) {
      const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
      std::nth_element(candidates_.begin(), last, candidates_.end());
      candidates_.resize(count_);
      limit_ = candidates_.back().key;
      is_limited_ = true;
    }
    return candidates_;
  }

 private:
  std::size_t count_;
  std::vector<Candidate<T>> candidates_;
  KeyOf<T> limit_ = 0;
  bool is_limited_ = false;
};

/// Adds the elements of x, or those that have a column if there are columns. Indexes begin at 0.
template <class T>
void add_all(Selection<T>& selection, std::span<const T> x, std::span<const std::uint32_t> columns,
             std::uint32_t flip) {
  if (!columns.empty()) {
    for (std::size_t i = 0; i < x.size();)
      if (columns[i] == no_column) {
        i = next_place_below(columns, i, 0, no_column);  // many follow each other
      } else {
        selection.add(key_of(x[i], flip), static_cast<std::uint32_t>(i));
        ++i;
      }
    return;
  }
  std::size_t i = 0;
  for (; i < x.size() && !selection.is_limited(); ++i)
    selection.add(key_of(x[i], flip), static_cast<std::uint32_t>(i));
  for (; i < x.size(); ++i) {
    i = next_place_below(x, i, flip, selection.limit());
    if (i < x.size()) selection.add(key_of(x[i], flip), static_cast<std::uint32_t>(i));
  }
}

std::span<const std::uint32_t> part_of(std::span<const std::uint32_t> columns, std::size_t first,
                                       std::size_t size) {
  return columns.empty() ? columns : columns.subspan(first, size);
}

}  // namespace

template <class T>
void top_k_select(Range range, std::span<const T> x, std::span<const std::uint32_t> places,
                  std::span<T> selected, std::span<std::uint32_t> selected_places, SortShape shape) {
  const std::uint64_t k = shape.keep;
  const std::uint64_t of_last =
      std::min<std::uint64_t>(k, shape.columns - (shape.tiles - std::uint64_t{1}) * sorted_tile);
  const std::uint64_t of_row = (shape.tiles - std::uint64_t{1}) * k + of_last;
  Selection<T> selection(k);
  for_row_tiles(range, shape, [&](RowTiles part) {
    const std::uint64_t first = part.first * sorted_tile, begin = part.row * shape.columns + first;
    const std::uint64_t size = std::min<std::uint64_t>(part.last * sorted_tile, shape.columns) - first;
    selection.clear();
    add_all(selection, x.subspan(begin, size), part_of(places, begin, size), shape.flip);
    auto& found = selection.reduce();
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    std::uint64_t to = part.row * of_row + part.first * k;
    const std::uint64_t end = part.row * of_row + std::min(part.last * k, of_row);
    for (const Candidate<T>& candidate : found) {
      const std::uint64_t from = begin + candidate.index;
      selected[to] = x[from];
      selected_places[to++] =
          places.empty() ? static_cast<std::uint32_t>(first) + candidate.index : places[from];
    }
    for (; to < end; ++to) selected_places[to] = no_column;
  });
}

template <class T>
void top_k_sort(Range range, std::span<const T> x, std::span<const std::uint32_t> places, std::span<T> sorted,
                std::span<std::uint32_t> sorted_places, std::span<const std::uint32_t>, SortShape shape) {
  Selection<T> selection(shape.keep);
  for_rows(range, shape, [&](std::uint64_t row) {
    const std::uint64_t begin = row * shape.columns;
    selection.clear();
    add_all(selection, x.subspan(begin, shape.columns), part_of(places, begin, shape.columns), shape.flip);
    auto& found = selection.reduce();
    std::sort(found.begin(), found.end());
    std::uint64_t to = row * shape.keep;
    for (const Candidate<T>& candidate : found) {
      const std::uint64_t from = begin + candidate.index;
      sorted[to] = x[from];
      sorted_places[to++] = places.empty() ? candidate.index : places[from];
    }
  });
}

#define WYE_TOP_K(T)                                                                                  \
  template void top_k_select(Range, std::span<const T>, std::span<const std::uint32_t>, std::span<T>, \
                             std::span<std::uint32_t>, SortShape);                                    \
  template void top_k_sort(Range, std::span<const T>, std::span<const std::uint32_t>, std::span<T>,   \
                           std::span<std::uint32_t>, std::span<const std::uint32_t>, SortShape);
WYE_TOP_K(float)
WYE_TOP_K(half)
WYE_TOP_K(bfloat16)
WYE_TOP_K(std::int32_t)
WYE_TOP_K(std::uint32_t)
WYE_TOP_K(std::uint64_t)
#undef WYE_TOP_K

}  // namespace wye::workloads::cpu
#endif
