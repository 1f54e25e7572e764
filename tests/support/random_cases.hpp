#pragma once
/// The seeds of tests with random cases.
#include <cstdio>
#include <cstdlib>

#include "support/sanitizers.hpp"

namespace wye::test {

/// A range of seeds: `for (const unsigned seed : RandomCases(1000))`.
class RandomCases {
 public:
  /// `plain` seeds, from 0 on; a tenth of them under the thread sanitizer, a quarter under the
  /// address sanitizer of clang. WYE_TEST_SEEDS=FIRST/DIVISOR makes it another part, which begins
  /// at FIRST: `.ci/run` takes a quarter, from a number of the commit on.
  explicit RandomCases(unsigned plain) : count_(plain / (under_tsan ? 10 : under_asan ? 4 : 1)) {
    const char* const asked = std::getenv("WYE_TEST_SEEDS");
    unsigned divisor = 0;
    if (asked && std::sscanf(asked, "%u/%u", &first_, &divisor) == 2 && divisor != 0) count_ /= divisor;
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
