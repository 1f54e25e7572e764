#pragma once
/// Histograms of durations.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace wye::inline v0 {
namespace detail {

/// Returns the bucket of a histogram that counts `value`. Values below 8 have a bucket each; the others
/// have four for each octave.
constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - 3);
  return 4 * static_cast<std::size_t>(shift) + static_cast<std::size_t>(value >> shift);
}

}  // namespace detail

/// Counts durations in buckets whose width grows with them: four for each octave, as the buckets of
/// HdrHistogram (G. Tene, 2012). 1.3 KiB.
/// Threads: thread-compatible.
class WYE_API Histogram {
 public:
  static constexpr Duration longest{(std::int64_t{1} << 42) - 1};  ///< 73 minutes

  /// Adds a duration. Less than zero counts as zero, and more than `longest` as that.
  void add(Duration duration) noexcept {
    duration = std::max(duration, Duration::zero());
    ++buckets_[detail::bucket_of(static_cast<std::uint64_t>(std::min(duration, longest).count()))];
    ++count_;
    sum_ += duration;
  }
  /// Adds the durations of another histogram.
  void add(const Histogram& other) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// Returns the exact sum of the durations.
  Duration sum() const noexcept { return sum_; }
  /// Returns a duration that is at most 12.5 % above or below the least duration which `fraction` (0 to
  /// 1) of all durations do not exceed: 0.5 for the median. Zero without durations.
  Duration percentile(double fraction) const noexcept;

 private:
  std::uint64_t count_ = 0;
  Duration sum_{};
  std::array<std::uint64_t, detail::bucket_of(static_cast<std::uint64_t>(longest.count())) + 1> buckets_{};
};

}  // namespace wye
