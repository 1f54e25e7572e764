#pragma once
/// Sets of the elements of an array.
#include <wye/device/detail/inline_list.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace wye::inline v0::data {

/// The elements [first, last) of an array.
struct Interval {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  bool empty() const noexcept { return first >= last; }
  bool contains(Interval other) const noexcept { return first <= other.first && other.last <= last; }
  bool overlaps(Interval other) const noexcept { return first < other.last && other.first < last; }
  friend bool operator==(Interval, Interval) = default;
};

/// A set of elements, as disjoint intervals in ascending order that do not touch. Sets of up to two
/// intervals allocate nothing. Adding or removing an interval makes at most one interval more:
/// within `reserve` neither throws.
/// Threads: thread-compatible.
class IntervalSet {
 public:
  IntervalSet() = default;
  explicit IntervalSet(Interval interval) { add(interval); }

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  const Interval* begin() const noexcept { return all_.begin(); }
  const Interval* end() const noexcept { return all_.end(); }
  /// Returns the number of elements.
  std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    for (const Interval& one : all_) sum += one.last - one.first;
    return sum;
  }
  bool contains(Interval wanted) const noexcept {
    return wanted.empty() || std::any_of(begin(), end(), [&](Interval one) { return one.contains(wanted); });
  }
  bool contains(const IntervalSet& wanted) const noexcept {
    return std::all_of(wanted.begin(), wanted.end(), [&](Interval one) { return contains(one); });
  }
  bool overlaps(Interval other) const noexcept {
    return std::any_of(begin(), end(), [&](Interval one) { return one.overlaps(other); });
  }
  bool overlaps(const IntervalSet& other) const noexcept {
    return std::any_of(other.begin(), other.end(), [&](Interval one) { return overlaps(one); });
  }

  void reserve(std::size_t intervals) { all_.reserve(intervals); }
  void clear() noexcept { all_.clear(); }
  void add(Interval added) {
    if (added.empty()) return;
    std::size_t first = 0;
    while (first < all_.size() && all_[first].last < added.first) ++first;
    std::size_t last = first;  // [first, last): the intervals that `added` overlaps or touches
    for (; last < all_.size() && all_[last].first <= added.last; ++last)
      added = {std::min(added.first, all_[last].first), std::max(added.last, all_[last].last)};
    if (first == last)
      insert(first, added);
    else
      all_[first] = added, erase(first + 1, last);
  }
  void remove(Interval removed) {
    if (removed.empty()) return;
    std::size_t first = 0;
    while (first < all_.size() && all_[first].last <= removed.first) ++first;
    if (first == all_.size()) return;
    if (all_[first].first < removed.first) {
      const Interval rest{removed.last, all_[first].last};
      if (!rest.empty()) insert(first + 1, rest);
      all_[first++].last = removed.first;
    }
    std::size_t last = first;
    while (last < all_.size() && all_[last].last <= removed.last) ++last;
    if (last < all_.size()) all_[last].first = std::max(all_[last].first, removed.last);
    erase(first, last);
  }
  void add(const IntervalSet& added) {
    for (const Interval& one : added) add(one);
  }
  void remove(const IntervalSet& removed) {
    for (const Interval& one : removed) remove(one);
  }
  /// Returns the elements that are in this set and not in `other`.
  IntervalSet without(const IntervalSet& other) const {
    IntervalSet rest = *this;
    rest.remove(other);
    return rest;
  }
  /// Returns the elements that are in both sets.
  IntervalSet common(const IntervalSet& other) const { return without(without(other)); }

 private:
  void insert(std::size_t at, Interval interval) {
    all_.push_back({});
    std::move_backward(all_.begin() + at, all_.end() - 1, all_.end());
    all_[at] = interval;
  }
  void erase(std::size_t first, std::size_t last) noexcept {
    std::move(all_.begin() + last, all_.end(), all_.begin() + first);
    all_.truncate(all_.size() - (last - first));
  }

  detail::InlineList<Interval, 2> all_;
};

}  // namespace wye::data
