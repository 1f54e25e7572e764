// A submission that waits for work that is not yet submitted is parked, and delays no other
// submission.
#include "backend/vulkan/vulkan_queue.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "base/worker.hpp"

namespace wye::test {
namespace {

TEST_CASE("a lane that waits for the host does not delay other lanes", "[vulkan]") {
  Rig rig;
  const auto gate = good(rig.device().create_timeline());
  const auto add = rig.kernel("add");
  const auto x = rig.buffer(std::vector<Word>(length, 1)), y = rig.buffer(std::vector<Word>(length, 1));
  auto waiting = rig.lane(), other = rig.lane();
  waiting->wait_for({gate, 3});
  waiting->dispatch(add, arguments_of(argument(x), Word{5}), length);
  const TimelinePoint end = waiting->submit();
  waiting->dispatch(add, arguments_of(argument(x), Word{7}),
                    length);  // waits behind it, without waiting itself
  const TimelinePoint last = waiting->submit();
  for (int i = 0; i < 10; ++i) {
    other->dispatch(add, arguments_of(argument(y), Word{1}), length);
    settle(*other);
  }
  CHECK(difference(rig.read(y), std::vector<Word>(length, 11)) == "");
  CHECK(difference(rig.read(x), std::vector<Word>(length, 1)) == "");
  CHECK(end.timeline->reached() == 0);
  CHECK(end.timeline->wait(end.value, Clock::steady().now() + 5ms).error() == Errc::timed_out);
  good(gate->signal(2));
  CHECK(end.timeline->wait(end.value, Clock::steady().now() + 5ms).error() == Errc::timed_out);
  good(gate->signal(3));
  good(last.timeline->wait(last.value, Instant::max()));
  settle(*waiting);
  CHECK(difference(rig.read(x), std::vector<Word>(length, 13)) == "");
}

TEST_CASE("lanes may wait for values of other lanes that are submitted later", "[vulkan]") {
  Rig rig;
  const auto add = rig.kernel("add"), mix = rig.kernel("mix");
  const auto x = rig.buffer(std::vector<Word>(length, 2)), y = rig.buffer(std::vector<Word>(length, 3));
  auto first = rig.lane(), second = rig.lane(), third = rig.lane();
  auto base = good(rig.device().create_lane({}));
  const auto submit = [&](LaneBase& lane, auto record, std::vector<TimelinePoint> waits) {
    auto recording = std::make_shared<Recording>();
    record(*recording);
    recording->close();
    return good(lane.submit({.recording = recording, .waits = waits, .stop = {}}));
  };
  auto a = good(rig.device().create_lane({})), b = good(rig.device().create_lane({})),
       c = good(rig.device().create_lane({}));
  const auto add_x = [&](Word by) {
    return [&, by](Recording& r) { r.dispatch(add, arguments_of(argument(x), by), length); };
  };
  // c after b after a, handed over in the other order.
  submit(*c, [&](Recording& r) { r.dispatch(mix, arguments_of(argument(x), argument(y), Word{0}), length); },
         {{b->timeline(), 1}});
  submit(*b, add_x(10), {{a->timeline(), 2}});
  submit(*a, add_x(1), {});
  CHECK(b->timeline()->reached() == 0);
  submit(*a, add_x(1), {});
  good(c->wait(1, Instant::max()));
  CHECK(difference(rig.read(x), std::vector<Word>(length, 14)) == "");
  CHECK(difference(rig.read(y), std::vector<Word>(length, 9 + 14)) == "");
}

TEST_CASE("sources of a parked submission have been read when submit returns", "[vulkan]") {
  Rig rig;
  const auto gate = good(rig.device().create_timeline());
  const auto x = rig.buffer(3u << 20);
  auto source = random_words(1, (3u << 20) / 4);
  const auto kept = source;
  std::vector<Word> out(source.size());
  auto lane = rig.lane();
  lane->wait_for({gate, 1});
  lane->upload(bytes_of(source), range(x));
  lane->download(range(x), writable_bytes_of(out));
  lane->submit();
  std::fill(source.begin(), source.end(), 0xabababab);
  good(gate->signal(1));
  settle(*lane);
  CHECK(difference(out, kept) == "");
}

TEST_CASE("a wait for a destroyed lane fails", "[vulkan]") {
  Rig rig;
  const auto x = rig.buffer(std::vector<Word>(length, 1));
  auto lane = rig.lane();
  auto gone = good(rig.device().create_lane({}));
  const auto timeline = gone->timeline();
  lane->wait_for({timeline, 1});
  lane->fill(range(x), 9);
  const TimelinePoint point = lane->submit();
  CHECK(point.value == 1);
  gone.reset();
  CHECK(timeline->wait(1, Instant::max()).error() == Errc::closed);
  auto settled = lane->wait(Instant::max());
  REQUIRE_FALSE(settled);
  CHECK(settled.error() == Errc::closed);
  auto another = rig.lane();
  another->wait_for(point);
  another->fill(range(x), 7);
  CHECK(another->wait(Instant::max()).error() == Errc::closed);
  CHECK(difference(rig.read(x), std::vector<Word>(length, 1)) == "");
}

TEST_CASE("a timeline only increases, and only a lane signals its own timeline", "[vulkan]") {
  Rig rig;
  const auto timeline = good(rig.device().create_timeline());
  CHECK(timeline->owner() == &rig.device());
  CHECK(timeline->reached() == 0);
  good(timeline->signal(5));
  CHECK(timeline->signal(5).error() == Errc::invalid_argument);
  CHECK(timeline->signal(4).error() == Errc::invalid_argument);
  good(timeline->signal(std::numeric_limits<std::uint64_t>::max()));
  CHECK(timeline->reached() == std::numeric_limits<std::uint64_t>::max());
  const auto lane = good(rig.device().create_lane({}));
  CHECK(lane->timeline()->signal(1).error() == Errc::invalid_argument);
}

TEST_CASE("past and infinite deadlines are supported", "[vulkan]") {
  Rig rig;
  const auto add = rig.kernel("add");
  const auto x = rig.buffer(std::vector<Word>(length, 1));
  const auto gate = good(rig.device().create_timeline());
  auto lane = rig.lane();
  lane->wait_for({gate, 1});
  lane->dispatch(add, arguments_of(argument(x), Word{1}), length);
  const TimelinePoint end = lane->submit();
  for (const Instant past : {Instant::min(), Instant{}, Clock::steady().now() - 1h, Clock::steady().now()})
    CHECK(end.timeline->wait(end.value, past).error() == Errc::timed_out);
  good(gate->signal(1));
  for (const Instant far : {Instant::max() - 1ns, Instant(Duration(std::int64_t{1} << 62)), Instant::max()})
    good(end.timeline->wait(end.value, far));
  for (const Instant past : {Instant::min(), Clock::steady().now()})
    good(end.timeline->wait(end.value, past));
  settle(*lane);
}

TEST_CASE("waiting for a value that the lane has not submitted is refused", "[vulkan]") {
  Rig rig;
  const auto lane = checked(good(rig.device().create_lane({})));
  CHECK(lane->wait(1, Instant::max()).error() == Errc::invalid_argument);
  CHECK(lane->timeline()->wait(1, Clock::steady().now() + 2ms).error() == Errc::timed_out);
  good(lane->wait(0, Instant::max()));
}

TEST_CASE("a timeline of another device is refused", "[vulkan]") {
  Rig rig;
  const auto other = open_device();
  const auto foreign = good(other->create_timeline());
  const auto x = rig.buffer(64);
  const auto lane = std::make_unique<Lane>(checked(good(rig.device().create_lane({}))));
  lane->wait_for({foreign, 1});
  lane->fill(range(x), 1);
  CHECK(lane->wait(Instant::max()).error() == Errc::invalid_argument);
}

TEST_CASE("many threads drive lanes that wait for each other and for the host", "[vulkan]") {
  Rig rig;
  constexpr unsigned threads = 4;
  constexpr Word rounds = 60;
  const auto add = rig.kernel("add");
  const auto gate = good(rig.device().create_timeline());
  const auto shared = rig.buffer(std::vector<Word>(length, 0));
  std::vector<std::shared_ptr<Timeline>> turns;
  for (unsigned i = 0; i < threads; ++i) turns.push_back(good(rig.device().create_timeline()));
  std::vector<std::unique_ptr<LaneBase>> lanes;
  for (unsigned i = 0; i < threads; ++i) lanes.push_back(good(rig.device().create_lane({})));
  std::atomic<unsigned> failures{0};
  {
    std::vector<base::Worker> workers;
    for (unsigned me = 0; me < threads; ++me)
      workers.push_back(good(base::Worker::start("lane", [&, me] {
        for (Word round = 0; round < rounds; ++round) {
          auto recording = std::make_shared<Recording>();
          recording->dispatch(add, arguments_of(argument(shared), Word{1}), length);
          recording->close();
          // Round by round, one lane after the other: only the order of the waits makes the sum
          // right.
          std::vector<TimelinePoint> waits;
          if (me != 0)
            waits.push_back({lanes[me - 1]->timeline(), round + 1});
          else if (round != 0)
            waits.push_back({lanes[threads - 1]->timeline(), round});
          if (round % 8 == 3) waits.push_back({gate, round});
          auto value = lanes[me]->submit({.recording = recording, .waits = waits, .stop = {}});
          if (!value)
            ++failures;
          else if (round % 5 == 0 && round < 3 && !lanes[me]->wait(*value, Instant::max()))
            ++failures;
        }
        if (!lanes[me]->wait(rounds, Instant::max())) ++failures;
      })));
    for (Word i = 1; i <= rounds; ++i) good(gate->signal(i));
  }
  CHECK(failures == 0);
  CHECK(difference(rig.read(shared), std::vector<Word>(length, threads * rounds)) == "");
}

TEST_CASE("after an early wake-up the wait continues until the deadline", "[vulkan]") {
  Driver driver;
  unsigned early = 0;
  driver.replace<PFN_vkWaitSemaphores>(
      "vkWaitSemaphores", [&](PFN_vkWaitSemaphores real, VkDevice device, const VkSemaphoreWaitInfo* info,
                              std::uint64_t timeout) {
        if (early > 0) return --early, VK_TIMEOUT;
        return real(device, info, timeout);
      });
  Rig rig({.wrap = driver.wrap()});
  const auto x = rig.buffer(std::vector<Word>(length, 1));
  for (const Instant until : {Instant::max(), Clock::steady().now() + 60s}) {
    std::vector<Word> out(length, 5);
    auto lane = rig.lane();
    lane->download(range(x), writable_bytes_of(out));
    early = 3;
    good(lane->wait(until));
    CHECK(early == 0);
    CHECK(difference(out, std::vector<Word>(length, 1)) == "");
  }
}

}  // namespace
TEST_CASE("the loss of a device calls back with device_lost, whether the value was submitted or not",
          "[vulkan]") {
  Rig rig;
  const auto gate = good(rig.device().create_timeline());
  auto base = good(rig.device().create_lane({}));
  const auto timeline = base->timeline();
  std::atomic<int> told{0};
  const TimelineCallback note = [&](const Error* failure) {
    told += failure && *failure == Errc::device_lost ? 1 : 100;
  };
  good(timeline->when(1, note));
  good(timeline->when(7, note));
  good(gate->when(3, note));
  rig.device().lose("vkQueueSubmit");
  CHECK(base::seen_before_parking([&] { return told == 3; }, 1min));
  good(gate->when(1, note));
  CHECK(told == 4);
}

TEST_CASE("a device ends with its last handle, also right after a callback of its waiter thread",
          "[vulkan]") {
  Driver driver;
  VulkanOptions options;
  options.wrap = driver.wrap();
  const auto found = discover(options);
  const auto usable =
      std::find_if(found.begin(), found.end(), [](const Discovered& one) { return one.adapter; });
  REQUIRE(usable != found.end());
  const auto before = driver.alive();
  const int threads = base::Worker::alive();
  std::atomic<bool> called{false};
  {
    const auto device = good(usable->adapter->open());
    const auto gate = good(device->create_timeline());
    const auto buffer = good(device->create_buffer({.bytes = 4_KiB, .account = nullptr}));
    const auto lane = good(Lane::create(*device));
    lane->wait_for({gate, 1});
    lane->fill({buffer, {}, 4_KiB}, 7);
    const TimelinePoint end = lane->submit();
    good(end.timeline->when(end.value, [&](const Error*) {
      called = true;
      std::this_thread::sleep_for(50ms);  // the last handles are dropped meanwhile
    }));
    good(gate->signal(1));
    REQUIRE(base::seen_before_parking([&] { return called.load(); }, 1min));
  }
  CHECK(driver.alive() == before);
  CHECK(base::Worker::alive() == threads);
}

}  // namespace wye::test
