// Tags of jobs: when they are forgotten.
#include "scheduler/tags.hpp"

#include <string>

#include "support/catch.hpp"

using namespace wye;

TEST_CASE("a tag without jobs is remembered until the virtual end of its last job", "[scheduler][tags]") {
  scheduler::Tags tags({}, {}, true);
  const auto come_and_go = [&] {
    for (int i = 0; i < 1000; ++i) tags.leave(*tags.enter("frame " + std::to_string(i)), Duration::zero());
  };
  scheduler::TagState& tag = *tags.enter("preview");
  const Instant start = tags.ready(tag), end = tags.next_start(tag);
  REQUIRE(end > start);
  tags.leave(tag, Duration::zero());
  tags.started(start);
  come_and_go();
  scheduler::TagState& again = *tags.enter("preview");
  CHECK(tags.next_start(again) == end);  // a new tag would start now
  tags.leave(again, Duration::zero());
  tags.started(end);
  come_and_go();
  CHECK(tags.size() <= 128);
  CHECK(tags.enter("preview")->finish == Instant());
}
