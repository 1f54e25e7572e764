// The order of the steps of a plan.
#include "scheduler/arrangement.hpp"

#include <cstddef>
#include <vector>

#include "support/catch.hpp"

using namespace wye;
using scheduler::Arrangement;
using scheduler::Dependencies;

namespace {

using Numbers = std::vector<std::size_t>;

/// Arranges steps of one call each, which follow other steps because of memory.
Arrangement arranged(const Numbers& devices, const std::vector<Numbers>& after) {
  return scheduler::arrange(devices, Numbers(devices.size(), 1), {after, std::vector<Numbers>(after.size())});
}

std::vector<Numbers> steps_of(const Arrangement& arrangement) {
  std::vector<Numbers> all;
  for (const scheduler::Segment& segment : arrangement.segments) {
    all.emplace_back();
    for (const auto& dispatch : segment.dispatches) all.back().push_back(dispatch.step);
  }
  return all;
}

}  // namespace

TEST_CASE("a segment takes all steps that need no other device", "[scheduler]") {
  // 0 and 3 are independent, 1 follows 0 on another device, 2 follows 1 and 3.
  const Arrangement two = arranged({7, 8, 7, 7}, {{}, {0}, {1, 3}, {}});
  CHECK(steps_of(two) == std::vector<Numbers>{{0, 3}, {1}, {2}});
  CHECK(two.segments[0].device == 7);
  CHECK(two.segments[1].device == 8);
  CHECK(two.segments[2].device == 7);
  CHECK(two.segment_of == Numbers{0, 1, 2, 0});
  CHECK(two.position == Numbers{0, 2, 3, 1});
  CHECK(two.command_of == Numbers{0, 0, 0, 1});
}

TEST_CASE("steps of a segment that can run at the same time are neighbours of one rank", "[scheduler]") {
  // Two chains, 0 -> 1 -> 4 and 2 -> 3.
  const Arrangement one = arranged({0, 0, 0, 0, 0}, {{}, {0}, {}, {2}, {1}});
  CHECK(steps_of(one) == std::vector<Numbers>{{0, 2, 1, 3, 4}});
  CHECK(one.rank == Numbers{1, 2, 1, 2, 3});
}

TEST_CASE("only a step that follows another one by request is ordered, once for all before it",
          "[scheduler]") {
  // 2 and 3 follow 0 and 1 by request; the order of 2 holds for 3.
  const Dependencies dependencies{{{}, {}, {0}, {1}, {2}}, {{}, {}, {0}, {1}, {}}};
  const Arrangement one = scheduler::arrange(Numbers{0, 0, 0, 0, 0}, Numbers{1, 2, 2, 1, 1}, dependencies);
  REQUIRE(one.segments.size() == 1);
  const auto& dispatches = one.segments[0].dispatches;
  REQUIRE(dispatches.size() == 7);
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    INFO("command " << i);
    CHECK(dispatches[i].is_ordered == (i == 3));
  }
  CHECK(dispatches[3].step == 2);
  CHECK(dispatches[4].call == 1);
  CHECK(one.command_of == Numbers{0, 1, 3, 5, 6});
}

TEST_CASE("a request across segments needs no barrier", "[scheduler]") {
  const Arrangement two = scheduler::arrange(Numbers{0, 1}, Numbers{1, 1}, {{{}, {0}}, {{}, {0}}});
  REQUIRE(two.segments.size() == 2);
  CHECK(!two.segments[1].dispatches[0].is_ordered);
}
