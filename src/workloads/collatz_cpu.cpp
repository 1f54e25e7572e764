#include <algorithm>
#include <array>
#include <cstddef>

#include "cpu.hpp"

namespace wye::inline v0::workloads::cpu {
namespace {

__extension__ using Wide = unsigned __int128;

Wide wide(UInt128 n) { return static_cast<Wide>(n.high) << 64 | n.low; }
UInt128 words_of(Wide n) { return {static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(n >> 64)}; }

/// A jump takes ten halvings, and the steps 3n + 1 between them. The lowest ten bits b of a number
/// a 2^10 + b determine these steps. After the jump, the number is factor a + term. Each value
/// after a step 3n + 1 is such a line in a, too. The line with the largest factor has the largest
/// term, for every b: it is the peak, 2 (peak_factor a + peak_term). A jump without such a step has
/// zeros.
struct alignas(16) Jump {
  std::uint16_t factor = 1;  // at most 3^10, as are the others
  std::uint16_t term = 0;
  std::uint16_t peak_factor = 0;
  std::uint16_t peak_term = 0;
  std::uint16_t steps = 0;
};
constexpr unsigned jump_log2 = 10;
constexpr std::int32_t most_jump_steps = 2 * jump_log2;

/// The whole trajectory of a small number.
struct Tail {
  std::uint32_t peak = 0;
  std::int32_t steps = 0;
};
constexpr std::uint32_t tails_log2 = 14;

/// A jump from less than 2^(bits - 7) has values of `bits` bits: 2 * 3^10 < 2^17.
constexpr std::uint64_t narrow_bound = std::uint64_t{1} << 57;
constexpr Wide wide_bound = static_cast<Wide>(1) << 121;

struct CollatzTables {
  std::array<Jump, std::size_t{1} << jump_log2> jumps;
  std::array<Tail, std::size_t{1} << tails_log2> tails;

  CollatzTables() {
    for (std::uint32_t b = 0; b < jumps.size(); ++b) jumps[b] = jump_of(b);
    for (std::uint32_t n = 1; n < tails.size(); ++n) tails[n] = tail_of(n);
  }

 private:
  static Jump jump_of(std::uint32_t b) {
    std::uint32_t factor = 1u << jump_log2, term = b, steps = jump_log2;
    std::uint32_t peak_factor = 0, peak_term = 0;
    for (unsigned i = 0; i < jump_log2; ++i) {
      factor /= 2;
      if (term % 2 == 0) {
        term /= 2;
        continue;
      }
      factor *= 3;
      term = (3 * term + 1) / 2;
      ++steps;
      if (factor > peak_factor) peak_factor = factor, peak_term = term;
    }
    const auto word = [](std::uint32_t x) { return static_cast<std::uint16_t>(x); };
    return {word(factor), word(term), word(peak_factor), word(peak_term), word(steps)};
  }
  static Tail tail_of(std::uint32_t n) {
    Tail tail{.peak = n, .steps = 0};
    for (; n != 1; ++tail.steps) {
      n = n % 2 == 0 ? n / 2 : 3 * n + 1;
      tail.peak = std::max(tail.peak, n);
    }
    return tail;
  }
};

/// 144 KiB, made at the first call.
const CollatzTables& collatz_tables() {
  static const CollatzTables made;
  return made;
}

struct Walk {
  Wide n;
  Wide peak;
  std::int32_t steps;
};

/// Jumps while n is in [least, bound) and at most `most` steps are taken. n stays above 1, because
/// a jump divides by at most 2^10.
template <class Number>
void take_jumps(Walk& walk, const CollatzTables& tables, Number least, Number bound, std::int32_t most) {
  Number n = static_cast<Number>(walk.n), half_peak = 0;
  std::int32_t steps = walk.steps;
  while (n >= least && n < bound && steps <= most) {
    const Jump& jump = tables.jumps[static_cast<std::size_t>(n & (tables.jumps.size() - 1))];
    const Number a = n >> jump_log2;
    half_peak = std::max<Number>(half_peak, jump.peak_factor * a + jump.peak_term);
    n = jump.factor * a + jump.term;
    steps += jump.steps;
  }
  walk.n = n;
  walk.peak = std::max<Wide>(walk.peak, 2 * half_peak);
  walk.steps = steps;
}

/// Takes one step. Returns the end if there is one before it.
bool ends(Walk& walk, std::int32_t step_limit, CollatzEnd& end) {
  constexpr Wide most = ~static_cast<Wide>(0) / 3 - 1;  // whose triple plus 1 has 128 bits
  if (walk.n <= 1) return end = CollatzEnd::one, true;
  if (walk.steps == step_limit) return end = CollatzEnd::step_limit, true;
  if (walk.n % 2 == 0) {
    walk.n /= 2;
  } else {
    if (walk.n > most) return end = CollatzEnd::overflow, true;
    walk.n = 3 * walk.n + 1;
    walk.peak = std::max(walk.peak, walk.n);
  }
  ++walk.steps;
  return false;
}

CollatzResult trajectory(Wide first, const CollatzTables& tables, std::int32_t step_limit) {
  constexpr std::uint64_t small = std::uint64_t{1} << tails_log2;
  Walk walk{.n = first, .peak = first, .steps = 0};
  CollatzEnd end = CollatzEnd::one;
  do {
    const std::int32_t most = step_limit - most_jump_steps;
    if (walk.n < narrow_bound)
      take_jumps<std::uint64_t>(walk, tables, small, narrow_bound, most);
    else
      take_jumps<Wide>(walk, tables, narrow_bound, wide_bound, most);
    if (walk.n >= small) continue;
    const Tail tail = tables.tails[static_cast<std::size_t>(walk.n)];
    if (tail.steps > step_limit - walk.steps) continue;
    walk.steps += tail.steps;
    walk.peak = std::max<Wide>(walk.peak, tail.peak);
    break;
  } while (!ends(walk, step_limit, end));
  return {words_of(walk.peak), static_cast<std::uint32_t>(walk.steps), end};
}

CollatzSummary summary_of(const CollatzResult& result, std::uint64_t place) {
  if (result.end == CollatzEnd::overflow) return {.overflowed = 1};
  if (result.end == CollatzEnd::step_limit) return {.unfinished = 1};
  return {.finished = 1,
          .steps = result.steps,
          .most_steps = result.steps,
          .longest = place,
          .highest = place,
          .peak = result.peak};
}

/// Adds results of later places.
void add_later(CollatzSummary& sum, const CollatzSummary& later) {
  if (later.finished != 0) {
    if (sum.finished == 0 || later.most_steps > sum.most_steps)
      sum.most_steps = later.most_steps, sum.longest = later.longest;
    if (sum.finished == 0 || later.peak > sum.peak) sum.peak = later.peak, sum.highest = later.highest;
  }
  sum.finished += later.finished;
  sum.unfinished += later.unfinished;
  sum.overflowed += later.overflowed;
  sum.steps += later.steps;
}

}  // namespace

void collatz(Range range, std::span<CollatzResult> results, CollatzStart start) {
  const CollatzTables& tables = collatz_tables();
  const auto word = [](std::uint32_t low, std::uint32_t high) { return low | std::uint64_t{high} << 32; };
  const Wide first = wide({word(start.first_0, start.first_1), word(start.first_2, start.first_3)});
  const auto step_limit = static_cast<std::int32_t>(start.step_limit);
  for (std::uint64_t i : below(range, results.size())) results[i] = trajectory(first + i, tables, step_limit);
}

void collatz_summary(Range range, std::span<const CollatzResult> results,
                     std::span<const CollatzSummary> parts, std::span<CollatzSummary> sums) {
  const std::uint64_t count = parts.empty() ? results.size() : parts.size();
  const Range groups{range.first / 256, range.last / 256, range.grid};
  for (std::uint64_t group : below(groups, sums.size())) {
    const std::uint64_t first = group * collatz_stretch, last = std::min(count, first + collatz_stretch);
    CollatzSummary sum;
    for (std::uint64_t i = first; i < last; ++i)
      add_later(sum, parts.empty() ? summary_of(results[i], i) : parts[i]);
    sums[group] = sum;
  }
}

}  // namespace wye::workloads::cpu
