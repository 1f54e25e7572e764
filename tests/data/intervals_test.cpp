#include "data/intervals.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/failing_new.hpp"

using namespace wye;
using data::Interval;
using data::IntervalSet;

namespace {

constexpr std::size_t size = 40;
using Model = std::vector<bool>;

Model model_of(const IntervalSet& set) {
  Model model(size);
  for (const Interval& one : set)
    std::fill(model.begin() + static_cast<std::ptrdiff_t>(one.first),
              model.begin() + static_cast<std::ptrdiff_t>(one.last), true);
  return model;
}

/// Returns whether the intervals are in order, not empty, and do not touch.
bool is_normal(const IntervalSet& set) {
  std::uint64_t last = 0;
  for (const Interval& one : set) {
    if (one.empty() || (&one != set.begin() && one.first <= last)) return false;
    last = one.last;
  }
  return true;
}

}  // namespace

TEST_CASE("sets of intervals have the elements that were added and not removed", "[data]") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    IntervalSet set, other;
    Model model(size);
    for (int step = 0; step < 60; ++step) {
      const Interval one{random() % (size + 1), random() % (size + 1)};  // about half are empty
      const bool adds = random() % 2 == 0;
      const std::size_t before = set.size();
      if (adds)
        set.add(one);
      else
        set.remove(one);
      for (std::uint64_t i = one.first; i < one.last; ++i) model[i] = adds;
      REQUIRE(model_of(set) == model);
      REQUIRE(is_normal(set));
      REQUIRE(set.size() <= before + 1);
      REQUIRE(set.count() == static_cast<std::uint64_t>(std::count(model.begin(), model.end(), true)));
      const Interval wanted{random() % size, random() % size};
      bool has_all = true, has_some = false;
      for (std::uint64_t i = wanted.first; i < wanted.last; ++i) {
        has_all = has_all && model[i];
        has_some = has_some || model[i];
      }
      REQUIRE(set.contains(wanted) == has_all);
      if (!wanted.empty()) REQUIRE(set.overlaps(wanted) == has_some);
      other.add(wanted);
      const Model others = model_of(other);
      Model both(size), only(size);
      for (std::size_t i = 0; i < size; ++i)
        both[i] = model[i] && others[i], only[i] = model[i] && !others[i];
      REQUIRE(model_of(set.common(other)) == both);
      REQUIRE(model_of(set.without(other)) == only);
      REQUIRE(set.contains(other) == std::equal(both.begin(), both.end(), others.begin()));
      REQUIRE(set.overlaps(other) == (std::find(both.begin(), both.end(), true) != both.end()));
    }
  }
}

TEST_CASE("sets of intervals allocate nothing within what is reserved", "[data]") {
  IntervalSet set;
  set.reserve(21);
  const long before = test::allocations;
  for (std::uint64_t i = 0; i < 20; ++i) set.add({2 * i, 2 * i + 1});
  set.remove(Interval{4, 5});
  set.add({4, 5});
  CHECK(test::allocations == before);
  CHECK(set.size() == 20);
}
