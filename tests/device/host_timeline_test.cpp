#include "device/host_timeline.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "base/worker.hpp"
#include "device/doubles.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;

Instant soon() { return Clock::steady().now() + 1ms; }

}  // namespace

TEST_CASE(
    "waits return for reached values, time out for later values, and return the failure of the timeline",
    "[device]") {
  HostTimeline timeline(nullptr);
  CHECK(timeline.wait(0, Instant::min()));
  CHECK(timeline.wait(3, soon()).error() == Errc::timed_out);
  REQUIRE(timeline.signal(3));
  CHECK(timeline.wait(3, Instant::max()));
  CHECK(timeline.signal(3).error() == Errc::invalid_argument);
  CHECK_FALSE(timeline.failure());
  timeline.fail(Error(Errc::kernel_failed, "Broken."));
  timeline.fail(Error(Errc::io, "Later."));
  CHECK(timeline.reached() == 3);
  CHECK(timeline.wait(3, Instant::max()));
  CHECK(timeline.wait(4, Instant::max()).error().sentence() == "Broken.");
  CHECK(timeline.signal(9).error().sentence() == "Broken.");
  REQUIRE(timeline.failure());
  CHECK(timeline.failure()->sentence() == "Broken.");
}

TEST_CASE("a timeline calls each callback once, when the value is reached or the timeline fails",
          "[device]") {
  HostTimeline timeline(nullptr);
  std::vector<int> calls;
  const auto note = [&](int i) { return [&calls, i](const Error*) { calls.push_back(i); }; };
  REQUIRE(timeline.signal(2));
  REQUIRE(timeline.when(2, note(0)));
  CHECK(calls == std::vector<int>{0});
  REQUIRE(timeline.when(5, note(1)));
  REQUIRE(timeline.when(3, note(2)));
  REQUIRE(timeline.when(9, note(3)));
  CHECK(calls.size() == 1);
  REQUIRE(timeline.signal(3));
  CHECK(calls == std::vector<int>{0, 2});
  REQUIRE(timeline.signal(8));
  CHECK(calls == std::vector<int>{0, 2, 1});
  CHECK(timeline.is_known(8));
  CHECK_FALSE(timeline.is_known(9));
  timeline.fail(Error(Errc::io, "Broken."));
  CHECK(timeline.is_known(9));
  CHECK(calls == std::vector<int>{0, 2, 1, 3});
  REQUIRE(timeline.when(99, note(4)));
  CHECK(calls == std::vector<int>{0, 2, 1, 3, 4});
}

TEST_CASE("a callback may use its timeline", "[device]") {
  HostTimeline timeline(nullptr);
  std::vector<std::uint64_t> seen;
  TimelineCallback chain = [&](const Error*) {
    seen.push_back(timeline.reached());
    if (seen.size() < 5) {
      REQUIRE(timeline.when(timeline.reached() + 1, chain));
      (void)timeline.signal(timeline.reached() + 1);
    }
  };
  REQUIRE(timeline.when(1, chain));
  REQUIRE(timeline.signal(1));
  CHECK(seen == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
}

TEST_CASE("a callback that throws does not affect other callbacks or the timeline", "[device]") {
  HostTimeline timeline(nullptr);
  int calls = 0;
  REQUIRE(timeline.when(1, [](const Error*) { throw std::runtime_error("refused"); }));
  REQUIRE(timeline.when(1, [&](const Error* failure) { calls += failure == nullptr; }));
  REQUIRE(timeline.signal(1));
  CHECK(calls == 1);
  REQUIRE(timeline.when(1, [](const Error*) { throw std::runtime_error("refused"); }));
  REQUIRE(timeline.signal(2));
}

TEST_CASE("the end of a timeline calls its pending callbacks with closed", "[device]") {
  std::optional<Error> failure;
  {
    HostTimeline timeline(nullptr);
    REQUIRE(timeline.when(7, [&](const Error* error) { failure = *error; }));
  }
  REQUIRE(failure);
  CHECK(*failure == Errc::closed);
}

TEST_CASE("ten thousand callbacks in any order are called in the order of their values", "[device]") {
  HostTimeline timeline(nullptr);
  std::vector<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const std::uint64_t value = 1 + i * 7919 % 10000;
    REQUIRE(timeline.when(value, [&seen, value](const Error*) { seen.push_back(value); }));
  }
  REQUIRE(timeline.signal(5000));
  CHECK(seen.size() == 5000);
  REQUIRE(timeline.signal(10000));
  CHECK(seen.size() == 10000);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("threads that signal, wait, add callbacks and fail the timeline at once all return", "[device]") {
  for (std::uint64_t last : {400u, 150u}) {
    HostTimeline timeline(nullptr);
    std::atomic<int> called{0}, right{0};
    {
      std::vector<base::Worker> threads;
      for (std::uint64_t i = 0; i < 2; ++i)
        threads.push_back(base::Worker::start("wait", [&, i] {
                            for (std::uint64_t v = 1 + i; v <= 300; v += 2) {
                              const auto waited = timeline.wait(v, Instant::max());
                              right +=
                                  waited ? timeline.reached() >= v : v > last && waited.error() == Errc::io;
                            }
                          }).value());
      threads.push_back(base::Worker::start("watch", [&] {
                          for (std::uint64_t v = 1; v <= 300; ++v)
                            (void)timeline.when(v, [&](const Error*) { ++called; });
                        }).value());
      threads.push_back(base::Worker::start("signal", [&] {
                          for (std::uint64_t v = 1; v <= last; ++v) (void)timeline.signal(v);
                          timeline.fail(Error(Errc::io, "Broken."));
                        }).value());
    }
    CHECK(right == 300);
    CHECK(called == 300);
    CHECK(timeline.reached() == last);
  }
}

}  // namespace wye::test
