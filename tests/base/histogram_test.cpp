// Histograms of durations.
#include <wye/base/histogram.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;

TEST_CASE("percentiles are within 12.5 % of the exact ones", "[histogram]") {
  std::mt19937_64 random(1);
  for (const int count : {1, 2, 3, 100, 10000}) {
    Histogram histogram;
    std::vector<Duration> durations;
    Duration sum{};
    for (int i = 0; i < count; ++i) {
      // Of each size, from none to an hour.
      const std::int64_t bits = static_cast<std::int64_t>(random() % 42);
      durations.push_back(Duration(static_cast<std::int64_t>(random() & ((1ull << bits) - 1))));
      sum += durations.back();
      histogram.add(durations.back());
    }
    CHECK((histogram.count() == static_cast<std::uint64_t>(count) && histogram.sum() == sum));
    std::ranges::sort(durations);
    for (const double fraction : {0.0, 0.01, 0.25, 0.5, 0.95, 0.99, 1.0}) {
      const auto rank = std::max(1.0, std::ceil(fraction * count));
      const auto exact = static_cast<double>(durations[static_cast<std::size_t>(rank) - 1].count());
      CHECK(std::abs(static_cast<double>(histogram.percentile(fraction).count()) - exact) <= 0.125 * exact);
    }
  }
}

TEST_CASE("a histogram has no percentile without durations, and takes any duration and fraction",
          "[histogram]") {
  Histogram histogram;
  CHECK(histogram.percentile(0.5) == 0ns);
  histogram.add(-5ns);
  CHECK((histogram.count() == 1 && histogram.sum() == 0ns && histogram.percentile(1) == 0ns));
  histogram.add(Duration::max() / 2);
  CHECK(histogram.percentile(1) > Histogram::longest / 8 * 7);
  CHECK(histogram.percentile(1) < Histogram::longest / 8 * 9);
  CHECK(histogram.sum() == Duration::max() / 2);
  for (const double fraction : {-1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(histogram.percentile(fraction) == 0ns);
  CHECK(histogram.percentile(7) == histogram.percentile(1));
}

TEST_CASE("histograms are added", "[histogram]") {
  Histogram one, other, both;
  for (int i = 0; i < 1000; ++i) {
    Histogram& of = i % 3 == 0 ? one : other;
    of.add(Duration(i * i));
    both.add(Duration(i * i));
  }
  one.add(other);
  CHECK((one.count() == both.count() && one.sum() == both.sum()));
  for (const double fraction : {0.1, 0.5, 0.9}) CHECK(one.percentile(fraction) == both.percentile(fraction));
}
