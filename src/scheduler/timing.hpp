#pragma once
/// Classes of sizes, and the mean of some times.
#include <wye/base/clock.hpp>

#include <chrono>
#include <cstdint>

namespace wye::inline v0::scheduler {

/// Returns the quarter octave of `n`: 0 for 0 and 1, 4 for 2, 6 for 3, 8 to 11 for 4 to 7.
std::uint32_t size_class(std::uint64_t n) noexcept;
/// Returns the least number of a class.
std::uint64_t least_of_class(std::uint32_t size_class) noexcept;
inline constexpr std::uint32_t largest_size_class = 255;

/// The longest time that is kept. Sums of some such times do not overflow.
inline constexpr Duration longest_time = std::chrono::hours(24 * 365);

/// The mean, the spread and the least of some times. The first time is the mean. Each later one is
/// an eighth of it, so earlier ones are forgotten exponentially. After eight times, each counts as at
/// most twice the mean and eight times the spread: one outlier moves the mean by an eighth of it, and
/// by the spread. The spread rises with it, so a lasting change counts in full after a few times. A time
/// that is less than the mean by over twice the spread counts half: no disturbance makes a job faster,
/// and a device that others are preferred to is tried seldom.
/// Threads: a value.
struct Timing {
  Duration mean{};          ///< zero: no time is known
  Duration spread{};        ///< the mean distance of a time from the mean of those before it
  Duration least{};         ///< after the first eight it rises by 1/256 with each time
  std::uint32_t count = 0;  ///< of the times

  void note(Duration took) noexcept;
  friend bool operator==(const Timing&, const Timing&) = default;
};

}  // namespace wye::scheduler
