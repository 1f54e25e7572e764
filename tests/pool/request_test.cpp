// Requests for a lease: how loaded devices share them, their priorities and tags, and waits that
// cannot end.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "pool/waiting.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::pool_of;
using test::scripted;

namespace {

/// A device of a test of the order of choice, with what is in use there before the request.
struct Case {
  const char* id;
  AdapterType type = AdapterType::discrete;
  int leased = 0;           ///< contexts
  std::uint64_t bytes = 0;  ///< of a buffer of a context that is idle again
  int used = 0;             ///< when its last lease began: 1 before 2; 0: never
  Features features = {};
};
struct Row {
  const char* name;
  std::vector<Case> devices;
  Features needs;
  const char* chosen;
};

const std::vector<Row> table = {
    {"capability comes before all",
     {{.id = "cuda:0"}, {.id = "vulkan:0", .features = {Feature::int8}}},
     {Feature::int8},
     "vulkan:0"},
    {"then the backend",
     {{.id = "cuda:0", .leased = 1, .bytes = 100, .used = 1}, {.id = "vulkan:0"}},
     {},
     "cuda:0"},
    {"a device without an idle context is passed over",
     {{.id = "cuda:0", .leased = 2}, {.id = "vulkan:0", .leased = 1}},
     {},
     "vulkan:0"},
    {"then the type of the device",
     {{.id = "vulkan:0", .leased = 1}, {.id = "vulkan:1", .type = AdapterType::integrated}},
     {},
     "vulkan:0"},
    {"then the fewest leases",
     {{.id = "cuda:0", .leased = 1}, {.id = "cuda:1", .bytes = 100, .used = 1}},
     {},
     "cuda:1"},
    {"then the least memory",
     {{.id = "cuda:0", .bytes = 200}, {.id = "cuda:1", .bytes = 100, .used = 9}},
     {},
     "cuda:1"},
    {"then the least recently used",
     {{.id = "cuda:0", .used = 2}, {.id = "cuda:1", .used = 1}},
     {},
     "cuda:1"},
    {"then the order of devices", {{.id = "cuda:0"}, {.id = "cuda:1"}}, {}, "cuda:0"},
};

/// Collects the texts of a log.
struct Log {
  std::vector<std::string> lines;
  LogSink sink() {
    return [this](const LogRecord& record) { lines.emplace_back(record.text); };
  }
};

}  // namespace

TEST_CASE("a request gets a context of the device that comes first in the order of choice", "[pool]") {
  for (const Row& row : table) {
    CAPTURE(row.name);
    std::vector<test::Scripted> devices;
    for (const Case& one : row.devices) devices.push_back(scripted(one.id, one.type, one.features));
    ContextPool pool = pool_of(devices, {.lanes_per_device = 2});
    std::vector<Lease> held;
    std::vector<Buffer> buffers;
    for (int turn = 1; turn < 10; ++turn)
      for (const Case& one : row.devices)
        if (one.used == turn) REQUIRE(pool.try_lease({.on = one.id}));
    for (const Case& one : row.devices) {
      // A buffer outlives its lease, so that the context is idle and its memory in use.
      if (one.bytes != 0)
        buffers.push_back(pool.try_lease({.on = one.id})->buffer<std::byte>(one.bytes).value());
      for (int i = 0; i < one.leased; ++i) held.push_back(pool.try_lease({.on = one.id}).value());
    }
    CHECK(pool.try_lease({.needs = row.needs})->device().id() == row.chosen);
  }
}

TEST_CASE("leases of equal devices are spread over them", "[pool]") {
  ContextPool pool =
      pool_of({scripted("cuda:0"), scripted("cuda:1"), scripted("cuda:2")}, {.lanes_per_device = 2});
  std::vector<Lease> leases;
  std::string order;
  for (int i = 0; i < 6; ++i) order += leases.emplace_back(pool.try_lease().value()).device().id().back();
  CHECK(order == "012012");
}

TEST_CASE("a waiting request of a higher priority gets the next context", "[pool]") {
  test::CountingClock clock;
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .clock = &clock});
  auto held = std::make_unique<Lease>(pool.lease().value());
  test::Waiting low(pool, clock, {.priority = Priority::low}), normal(pool, clock),
      high(pool, clock, {.priority = Priority::high}), second(pool, clock, {.priority = Priority::high});
  held.reset();
  {
    const auto first = high.get();
    CHECK_FALSE(second.has_returned());
  }
  {
    const auto next = second.get();
    CHECK_FALSE(normal.has_returned());
  }
  {
    const auto next = normal.get();
    CHECK_FALSE(low.has_returned());
  }
  CHECK(low.get());
}

TEST_CASE("a request that has waited for `aging` is not overtaken by a new one of the next priority",
          "[pool]") {
  class Clock final : public wye::Clock {
   public:
    Instant now() const noexcept override {
      ++readings;
      return Instant() + Duration(time.load());
    }
    mutable std::atomic<int> readings{0};
    std::atomic<Duration::rep> time{0};
  } clock;
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .aging = 10s, .clock = &clock});
  const auto ask = [&](Priority priority, std::unique_ptr<Lease>& lease) {
    const int before = clock.readings;
    std::thread thread([&pool, &lease, priority] {
      lease =
          std::make_unique<Lease>(pool.lease({.deadline = Deadline::never(), .priority = priority}).value());
    });
    while (clock.readings < before + 2) std::this_thread::yield();
    (void)pool.metrics();
    return thread;
  };
  for (const bool is_aged : {false, true}) {
    CAPTURE(is_aged);
    auto held = std::make_unique<Lease>(pool.lease().value());
    std::unique_ptr<Lease> normal, high;
    std::thread first = ask(Priority::normal, normal);
    clock.time += Duration(is_aged ? 10s : 9s).count();
    std::thread second = ask(Priority::high, high);
    held.reset();
    (is_aged ? first : second).join();
    CHECK((is_aged ? normal : high) != nullptr);
    (is_aged ? normal : high).reset();
    (is_aged ? second : first).join();
  }
}

TEST_CASE("the wait for a lease ends when its request is stopped", "[pool]") {
  ManualClock clock;
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .clock = &clock});
  const Lease held = pool.lease({.tag = "preview"}).value();
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    while (pool.metrics().active == 0) std::this_thread::yield();
    stop = true;
  });
  const auto none = pool.lease({.deadline = Deadline::never(), .stop = StopToken(&stop)});
  stopper.join();
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::cancelled);
  CHECK(none.error().sentence().find("was stopped after") != std::string::npos);
  CHECK(none.error().sentence().find("held by 'preview' for 0.0 s") != std::string::npos);
  CHECK(pool.metrics().timeouts == 0);
}

TEST_CASE("a tag is shown while its lease lasts, cut to 31 characters", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1});
  for (const std::string& tag : {std::string("preview"), std::string(40, 'x'), std::string()}) {
    {
      const Lease lease = pool.lease({.tag = tag}).value();
      const ContextInfo info = pool.contexts().at(0);
      CHECK(info.tag == tag.substr(0, 31));
      CHECK(info.taken_at.starts_with("request_test.cpp:"));
      const auto none = pool.try_lease();
      CHECK((none.error().sentence().find("held by") != std::string::npos) == !tag.empty());
    }
    CHECK(pool.contexts().at(0).tag.empty());
    CHECK(pool.contexts().at(0).taken_at.empty());
  }
}

TEST_CASE("closing logs each lease of the application that has not ended", "[pool]") {
  Log log;
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 3, .log = log.sink()});
  { const Lease ended = pool.lease().value(); }
  const Lease untagged = pool.lease().value(), tagged = pool.lease({.tag = "preview"}).value();
  const int line = __LINE__ - 1;
  pool.close();
  pool.close();
  REQUIRE(log.lines.size() == 2);
  const std::string place = "since the call at request_test.cpp:" + std::to_string(line) + ".";
  for (const std::string& text : log.lines) CHECK(text.ends_with(place));
  CHECK(log.lines[0].find(untagged.id()) != std::string::npos);
  CHECK(log.lines[0].find("tag") == std::string::npos);
  CHECK(log.lines[1].find("'" + tagged.id() + "' (tag 'preview') is still leased") != std::string::npos);
}

TEST_CASE("a thread does not wait without end for contexts that it has leased itself", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0"), scripted("vulkan:0")}, {.lanes_per_device = 1});
  const Lease mine = pool.lease({.on = "cuda:0"}).value();
  const auto none = pool.lease({.on = "cuda:0", .deadline = Deadline::never()});
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::unavailable);
  CHECK(none.error().sentence().find("'cuda:0#0' was leased at request_test.cpp:") != std::string::npos);
  CHECK(none.error().sentence().find("by this thread") != std::string::npos);
  CHECK(pool.lease({.deadline = Deadline::never()})->device().id() == "vulkan:0");  // another one is idle
  CHECK(pool.lease({.on = "cuda:0", .deadline = 5ms}).error() == Errc::timed_out);
}

TEST_CASE("of threads that would wait for each other without end, the last is refused", "[pool]") {
  test::CountingClock clock;
  ContextPool pool = pool_of({scripted("cuda:0"), scripted("cuda:1"), scripted("cuda:2")},
                             {.lanes_per_device = 1, .clock = &clock});
  std::atomic<int> holding{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      const std::string own = "cuda:" + std::to_string(i), next = "cuda:" + std::to_string((i + 1) % 3);
      auto lease = std::make_unique<Lease>(pool.lease({.on = own}).value());
      ++holding;
      while (holding < 3) std::this_thread::yield();
      const auto second = pool.lease({.on = next, .deadline = Deadline::never()});
      if (second) return;
      ++refused;
      CHECK(second.error() == Errc::unavailable);
      CHECK(second.error().sentence().find("'" + next + "#0' was leased at") != std::string::npos);
    });
  for (std::thread& thread : threads) thread.join();  // each of the others gets its context then
  CHECK(refused == 1);
}

TEST_CASE("a wait for a thread that waits with a deadline is no deadlock", "[pool]") {
  test::CountingClock clock;
  ContextPool pool =
      pool_of({scripted("cuda:0"), scripted("cuda:1")}, {.lanes_per_device = 1, .clock = &clock});
  std::atomic<bool> is_held{false}, timed_out{false};
  auto mine = std::make_unique<Lease>(pool.lease({.on = "cuda:0"}).value());
  std::thread other([&] {
    const Lease lease = pool.lease({.on = "cuda:1"}).value();
    is_held = true;
    timed_out = pool.lease({.on = "cuda:0", .deadline = 50ms}).error() == Errc::timed_out;
  });
  while (!is_held) std::this_thread::yield();
  CHECK(pool.lease({.on = "cuda:1", .deadline = Deadline::never()}));
  other.join();
  CHECK(timed_out);
}
