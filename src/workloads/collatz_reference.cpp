#include <wye/workloads/collatz.hpp>

namespace wye::inline v0::workloads {
namespace {

__extension__ using ExactUInt128 = unsigned __int128;

/// Returns the words of a number.
UInt128 words_of_exact(ExactUInt128 n) {
  return {static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(n >> 64)};
}

CollatzResult exact_trajectory(ExactUInt128 n, std::uint32_t step_limit) {
  constexpr ExactUInt128 largest = ~static_cast<ExactUInt128>(0);
  ExactUInt128 peak = n;
  std::uint32_t steps = 0;
  CollatzEnd end = CollatzEnd::one;
  for (; n > 1; ++steps) {
    if (steps == step_limit) {
      end = CollatzEnd::step_limit;
      break;
    }
    if (n % 2 == 0) {
      n /= 2;
      continue;
    }
    if (n > (largest - 1) / 3) {
      end = CollatzEnd::overflow;
      break;
    }
    n = 3 * n + 1;
    if (n > peak) peak = n;
  }
  return {words_of_exact(peak), steps, end};
}

}  // namespace

namespace reference {

std::vector<CollatzResult> collatz(UInt128 first, std::uint64_t count, CollatzOptions options) {
  const ExactUInt128 n = static_cast<ExactUInt128>(first.high) << 64 | first.low;
  std::vector<CollatzResult> results;
  results.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) results.push_back(exact_trajectory(n + i, options.step_limit));
  return results;
}

CollatzSummary collatz_summary(std::span<const CollatzResult> results) {
  CollatzSummary summary;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CollatzResult& result = results[i];
    if (result.end == CollatzEnd::step_limit) ++summary.unfinished;
    if (result.end == CollatzEnd::overflow) ++summary.overflowed;
    if (result.end != CollatzEnd::one) continue;
    const bool first = summary.finished == 0;
    ++summary.finished;
    summary.steps += result.steps;
    if (first || result.steps > summary.most_steps) summary.most_steps = result.steps, summary.longest = i;
    if (first || result.peak > summary.peak) summary.peak = result.peak, summary.highest = i;
  }
  return summary;
}

}  // namespace reference

}  // namespace wye::workloads
