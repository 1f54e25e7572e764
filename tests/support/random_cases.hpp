#pragma once
/// The seeds of tests with random cases, and parts of sweeps.
#include <cstdio>
#include <cstdlib>

#include "support/sanitizers.hpp"

namespace wye::test {

/// What WYE_TEST_SEEDS=FIRST/DIVISOR says; 0/1 without it.
struct SeedPart {
  unsigned first = 0, divisor = 1;
};
inline SeedPart part_asked() {
  SeedPart part;
  const char* const asked = std::getenv("WYE_TEST_SEEDS");
  if (!asked || std::sscanf(asked, "%u/%u", &part.first, &part.divisor) != 2 || part.divisor == 0) return {};
  return part;
}

/// Returns whether a step of a sweep runs: each one, but under a sanitizer those of the part that
/// WYE_TEST_SEEDS names.
inline bool is_of_part(unsigned step) {
  const SeedPart part = under_tsan || under_asan ? part_asked() : SeedPart();
  return step % part.divisor == part.first % part.divisor;
}

/// A range of seeds: `for (const unsigned seed : RandomCases(1000))`.
class RandomCases {
 public:
  /// `plain` seeds, from 0 on; a tenth of them under the thread sanitizer, a quarter under the
  /// address sanitizer of clang. WYE_TEST_SEEDS=FIRST/DIVISOR makes it another part, which begins
  /// at FIRST: `.ci/run` takes a quarter, from a number of the commit on.
  explicit RandomCases(unsigned plain) : count_(plain / (under_tsan ? 10 : under_asan ? 4 : 1)) {
    const SeedPart part = part_asked();
    first_ = part.first;
    count_ /= part.divisor;
    if (count_ == 0) count_ = 1;
  }

  /// A seed; counts up.
  struct Iterator {
    unsigned seed;
    unsigned operator*() const { return seed; }
    Iterator& operator++() { return ++seed, *this; }
    bool operator!=(const Iterator& other) const { return seed != other.seed; }
  };
  Iterator begin() const { return {first_}; }
  Iterator end() const { return {first_ + count_}; }
  unsigned size() const { return count_; }

 private:
  unsigned first_ = 0, count_;
};

}  // namespace wye::test
