#pragma once
/// Collatz trajectories of numbers of 128 bits.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wye::inline v0::workloads {

/// An unsigned integer of 128 bits.
struct UInt128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr bool operator==(const UInt128&, const UInt128&) = default;
  friend constexpr std::strong_ordering operator<=>(const UInt128& a, const UInt128& b) {
    return a.high != b.high ? a.high <=> b.high : a.low <=> b.low;
  }
};

/// Returns the sum modulo 2^128.
WYE_LOCAL constexpr UInt128 operator+(UInt128 a, std::uint64_t b) {
  const std::uint64_t low = a.low + b;
  return {low, a.high + (low < b ? 1u : 0u)};
}

/// Returns the decimal digits.
WYE_API std::string to_string(UInt128 value);

/// The reason for the end of a trajectory.
enum class CollatzEnd : std::uint32_t {
  one,         ///< it reached 1, or began at 0
  step_limit,  ///< `step_limit` steps did not reach 1
  overflow,    ///< the next value is 2^128 or more
};

/// The trajectory of one number.
struct CollatzResult {
  UInt128 peak = {};        ///< the largest value, with the number itself
  std::uint32_t steps = 0;  ///< steps taken
  CollatzEnd end = CollatzEnd::one;
  friend bool operator==(const CollatzResult&, const CollatzResult&) = default;
};

struct CollatzOptions {
  std::uint32_t step_limit = 100'000;  ///< at most 100,000
};

/// Follows the trajectories of `first`, `first` + 1 and so on until they reach 1. A step halves an even value, and
/// replaces an odd value n by 3n + 1.
/// Shape:   as many numbers as results, any number. The last one is below 2^128. The numbers 0 and 1 take no step.
/// Bound:   exact. A trajectory that ends at the step limit, or before an overflow, has the steps and the peak up to
///          its end.
/// Bits:    equal on all devices.
/// Cost:    time in proportion to the steps. Host code takes ten halvings, and the steps between them, at a time.
/// Errors:  invalid_argument (a last number beyond 2^128 - 1, a step limit above 100,000).
WYE_API Job collatz(UInt128 first, Write<CollatzResult> results, CollatzOptions options = {});

/// Records and sums of results. Places are those of the results: 0 is the first.
struct CollatzSummary {
  std::uint64_t finished = 0;    ///< trajectories that reached 1; the others do not count in sums and records
  std::uint64_t unfinished = 0;  ///< trajectories that ended at the step limit
  std::uint64_t overflowed = 0;
  std::uint64_t steps = 0;       ///< the sum of the steps; divided by `finished` it is the mean
  std::uint64_t most_steps = 0;  ///< the record of steps
  std::uint64_t longest = 0;     ///< the first place that has it
  std::uint64_t highest = 0;     ///< the first place that has `peak`
  UInt128 peak = {};             ///< the record of height
  friend bool operator==(const CollatzSummary&, const CollatzSummary&) = default;
};

/// Finds the records of steps and of height among results, and adds up the steps.
/// Shape:   any number of results, one summary. Without a finished trajectory, records are 0 at
///          place 0.
/// Bound:   exact; the sum of steps is modulo 2^64.
/// Bits:    equal on all devices.
/// Cost:    reads the results once.
/// Errors:  invalid_argument (a number of summaries other than 1).
WYE_API Job collatz_summary(Read<CollatzResult> results, Write<CollatzSummary> summary);

namespace reference {
/// Follows the trajectories of `count` numbers step by step, on the calling thread. Numbers wrap
/// around at 2^128.
WYE_API std::vector<CollatzResult> collatz(UInt128 first, std::uint64_t count, CollatzOptions options = {});
WYE_API CollatzSummary collatz_summary(std::span<const CollatzResult> results);
}  // namespace reference

}  // namespace wye::workloads
