#include <wye/workloads/timeline.hpp>

#include <cmath>
#include <cstring>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::Evidence;
using workloads::TimelineOptions;
using workloads::TimelinePoint;

namespace {

std::vector<Evidence> observed(std::size_t count, float from = 0, float to = 1) {
  const std::vector<float> when = numbers(count, 1, from, to), weight = numbers(count, 2, 0, 10),
                           relevance = numbers(count, 3);
  std::vector<Evidence> evidence(count);
  for (std::size_t i = 0; i < count; ++i)
    evidence[i] = {when[i], weight[i], 0xffff'fff0u + static_cast<std::uint32_t>(i), relevance[i]};
  return evidence;
}

std::vector<TimelinePoint> placed(const std::vector<Evidence>& evidence, TimelineOptions options,
                                  const std::string& leg) {
  std::vector<TimelinePoint> points(evidence.size(), TimelinePoint{-1, -1, -1, 12345});
  run(workloads::timeline(evidence, points, options), leg);
  return points;
}

std::string difference_of(const std::vector<Evidence>& evidence, TimelineOptions options,
                          const std::string& leg) {
  const std::vector<TimelinePoint> points = placed(evidence, options, leg);
  std::vector<float> importance;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const TimelinePoint expected{evidence[i].timestamp, points[i].importance, evidence[i].relevance,
                                 evidence[i].category};
    if (std::memcmp(&expected, &points[i], sizeof expected) != 0)
      return "another point at " + std::to_string(i);
    importance.push_back(points[i].importance);
  }
  const std::vector<double> exact = reference::timeline(evidence, options);
  return difference(importance, exact, [&](std::size_t i) {
    const double x = double{options.decay} * std::abs(double{options.now} - double{evidence[i].timestamp});
    return x > 86.9 ? 2e-38 * std::abs(double{evidence[i].importance}) + 1e-37
                    : (4 + 4 * x) * 0x1p-23 * std::abs(exact[i]) + 1e-37;
  });
}

}  // namespace

TEST_CASE("timeline fades importance with distance from now", "[workloads][timeline]") {
  for (const std::string& leg : legs())
    for (std::size_t count : {0u, 1u, 3u, 255u, 257u, 2049u, 50001u}) {
      INFO(leg << ", " << count << " pieces of evidence");
      CHECK(difference_of(observed(count), {}, leg) == "");
      CHECK(difference_of(observed(count, -30, 30), {.now = -2.5f, .decay = 1.5f}, leg) == "");
      CHECK(difference_of(observed(count, -1e6f, 1e6f), {.now = 0, .decay = 0}, leg) == "");
    }
}

TEST_CASE("timeline has the meaning that is written down", "[workloads][timeline]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto points = placed({{0.5f, 3.0f, 7, 0.25f}}, {}, leg);
    CHECK(points[0].position == 0.5f);
    CHECK(points[0].importance == Approx(3.0 * std::exp(-2.0 * 0.5)));
    CHECK(points[0].relevance == 0.25f);
    CHECK(points[0].category == 7);
  }
}

TEST_CASE("timeline is right if its grid has more than one row", "[workloads][timeline][large][.huge]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of(observed((std::size_t{1} << 23) + 77), {}, leg) == "");
  }
}

TEST_CASE("timeline passes NaN and infinities on", "[workloads][timeline]") {
  const std::vector<Evidence> evidence{
      {undefined, 1, 1, 1},   {infinity, 1, 2, 1}, {-infinity, 1, 3, undefined},     {0.5f, undefined, 4, 1},
      {0.5f, infinity, 5, 1}, {1e30f, 1, 6, 1},    {infinity, infinity, 7, infinity}};
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of(evidence, {}, leg) == "");
    CHECK(difference_of(evidence, {.decay = 0}, leg) == "");
    CHECK(difference_of(evidence, {.decay = -0.0f}, leg) == "");
  }
}

TEST_CASE("timeline gives 0 beyond 87 for every importance", "[workloads][timeline]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto points = placed({{100, infinity, 1, 1},
                                {infinity, infinity, 2, 1},
                                {-100, -infinity, 3, 1},
                                {100, undefined, 4, 1},
                                {100, 3e38f, 5, 1}},
                               {.now = 0, .decay = 1}, leg);
    for (std::size_t i : {0u, 1u, 2u, 4u}) CHECK(points[i].importance == 0);
    CHECK(std::isnan(points[3].importance));
    CHECK(placed({{1, infinity, 1, 1}}, {}, leg)[0].importance == infinity);
  }
}

TEST_CASE("timeline gives the same bits again", "[workloads][timeline]") {
  const std::vector<Evidence> evidence = observed(5000, -3, 3);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto first = placed(evidence, {}, leg), second = placed(evidence, {}, leg);
    CHECK(std::memcmp(first.data(), second.data(), first.size() * sizeof first[0]) == 0);
  }
}

TEST_CASE("timeline refuses invalid arguments", "[workloads][timeline]") {
  std::vector<Evidence> evidence(3);
  std::vector<TimelinePoint> points(3), more(4);
  CHECK(refusal(workloads::timeline(evidence, more)) ==
        "Evidence (3 elements) of workload 'timeline' is not as long as its points (4 elements).");
  CHECK(refusal(workloads::timeline(evidence, points, {.decay = -1})) ==
        "Decay (-1.000000) of workload 'timeline' is not at least 0.");
  CHECK(refusal(workloads::timeline(evidence, points, {.now = INFINITY})) ==
        "Now (inf) of workload 'timeline' is not finite.");
}
