// Jobs that are cancelled, run out of time or lose their scheduler at each stage of their life.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::check_counts;
using test::Scripted;
using test::scripted;
using test::StopAt;
using Step = test::ScriptedDevice::Step;

TEST_CASE("a running job that is cancelled at any step settles as cancelled and returns what it held",
          "[scheduler]") {
  for (const Step step : test::ScriptedDevice::steps) {
    INFO("step " << static_cast<int>(step));
    const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
    StopAt stop;
    first->set_script(stop.script(step));
    Scheduler scheduler = test::scheduler_of({first, second});
    std::vector<float> x(10, 1.5f);
    auto ticket = scheduler.submit(test::host_scale()(x, 2.0f));
    stop.await();
    ticket.cancel();
    CHECK_FALSE(ticket.ready());  // a device may still use the caller's memory
    stop.open();
    const auto outcome = ticket.wait();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error() == Errc::cancelled);
    CHECK(scheduler.metrics().cancelled == 1);
    check_counts(scheduler.metrics());
    CHECK(second->steps_made() == 0);
    CHECK(first->buffers_alive() == 0);
    std::vector<float> y(10, 1.0f);
    CHECK(scheduler.run(test::host_scale()(y, 2.0f)));
  }
}

TEST_CASE(
    "a job that waits for its predecessor is cancelled at once, and its followers follow the predecessor",
    "[scheduler]") {
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 2}}).value();
  test::Latch latch;
  auto x = runtime.array<float>(4);
  for (float& value : x.write().value()) value = 1.0f;
  const auto scale = test::host_scale();
  auto first = runtime.submit(latch.kernel(x));
  latch.await();
  auto second = runtime.submit(scale(x, 2.0f));
  auto third = runtime.submit(scale(x, 3.0f));
  second.cancel();
  CHECK(second.ready());
  CHECK(second.wait().error() == Errc::cancelled);
  CHECK_FALSE(third.ready());
  latch.open();
  CHECK(first.wait());
  // The array should have been written by the cancelled job.
  CHECK(third.wait().error() == Errc::cancelled);
  CHECK(x.read().error() == Errc::cancelled);
  for (float& value : x.write().value()) value = 1.0f;
  CHECK(runtime.run(scale(x, 3.0f)));
  CHECK(x.read().value()[0] == 3.0f);
}

TEST_CASE("cancelling a job that has settled changes nothing", "[scheduler]") {
  Scheduler scheduler = test::scheduler_of({scripted("cuda:0")});
  std::vector<float> x(4, 1.0f);
  auto ticket = scheduler.submit(test::host_scale()(x, 2.0f));
  REQUIRE(ticket.wait());
  ticket.cancel();
  CHECK(ticket.wait());
  CHECK(scheduler.metrics().completed == 1);
  CHECK(scheduler.metrics().cancelled == 0);
}

TEST_CASE("a job whose time limit passes at any step settles as timed out, and no other device is tried",
          "[scheduler]") {
  for (const Step step : test::ScriptedDevice::steps) {
    INFO("step " << static_cast<int>(step));
    ManualClock clock;
    const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
    first->set_script([&, step](Step now) -> std::optional<Error> {
      if (now == step) clock.advance(2s);
      return std::nullopt;
    });
    Scheduler scheduler = test::scheduler_of({first, second}, {.clock = &clock});
    std::vector<float> x(10, 1.5f);
    const auto outcome = scheduler.run(test::host_scale()(x, 2.0f), {.time_limit = 1s});
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error() == Errc::timed_out);
    CHECK(second->steps_made() == 0);
    CHECK(scheduler.metrics().timed_out == 1);
    check_counts(scheduler.metrics());
    // A limit that the same delay does not reach.
    CHECK(scheduler.run(test::host_scale()(x, 2.0f), {.time_limit = 1min}));
  }
}

TEST_CASE("a job starts until its start_by and not at it", "[scheduler]") {
  for (const Duration late : {Duration(-1ns), Duration(0ns), Duration(1ns)}) {
    INFO(late.count() << " ns");
    ManualClock clock;
    const Scripted device = scripted("cuda:0");
    StopAt stop;
    device->set_script(stop.script(Step::submit));
    Scheduler scheduler = test::scheduler_of({device}, {.clock = &clock}, {.lanes_per_device = 1});
    std::vector<float> x(1, 1.0f), y(1, 1.0f);
    auto blocker = scheduler.submit(test::host_scale()(x, 2.0f));
    stop.await();
    std::promise<Errc> settled;
    auto ticket = scheduler.submit(test::host_scale()(y, 2.0f), {.start_by = Deadline(5ms)});
    // A continuation: a thread that waits for the ticket would settle it itself.
    ticket.then([&](const Result<Outcome>& r) { settled.set_value(r ? Errc{} : r.error().code()); });
    clock.advance(5ms + late);
    stop.open();
    CHECK(settled.get_future().get() == (late < 0ns ? Errc{} : Errc::timed_out));
    CHECK(y[0] == (late < 0ns ? 2.0f : 1.0f));
    CHECK(blocker.wait());
  }
}

TEST_CASE("jobs of random priorities run by priority and then in order of submission", "[scheduler]") {
  for (const unsigned seed : {1u, 2u, 3u}) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Scripted device = scripted("cuda:0");
    StopAt stop;
    device->set_script(stop.script(Step::submit));
    Scheduler scheduler = test::scheduler_of({device}, {}, {.lanes_per_device = 1});
    std::vector<float> x(1, 1.0f);
    auto blocker = scheduler.submit(test::host_scale()(x, 2.0f));
    stop.await();
    std::vector<int> ran;  // on the only lane
    std::vector<std::pair<Priority, int>> expected;
    std::vector<Ticket> tickets;
    std::vector<float> y(300, 1.0f);
    std::promise<void> all;
    std::atomic<int> left{0};
    for (int i = 0; i < 300; ++i) {
      const auto priority = static_cast<Priority>(random() % 3);
      const auto note = test::on_host("note", [&ran, i](Range, std::span<float>) { ran.push_back(i); });
      tickets.push_back(scheduler.submit(note(std::span<float>(y).subspan(static_cast<std::size_t>(i), 1)),
                                         {.priority = priority}));
      if (random() % 4 == 0)
        tickets.back().cancel();
      else
        expected.emplace_back(priority, i);
    }
    left = static_cast<int>(expected.size());
    for (const auto& [priority, i] : expected)
      tickets[static_cast<std::size_t>(i)].then([&](const Result<Outcome>&) {
        if (--left == 0) all.set_value();
      });
    stop.open();
    all.get_future().wait();
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<int> order;
    for (const auto& [priority, i] : expected) order.push_back(i);
    CHECK(ran == order);
    CHECK(blocker.wait());
  }
}

TEST_CASE("metrics agree at every moment while jobs complete, fail, fall back and are cancelled",
          "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  std::atomic<unsigned> made{0};
  first->set_script([&](Step step) -> std::optional<Error> {
    if (step != Step::submit) return std::nullopt;
    const unsigned n = ++made;
    if (n % 3 == 0) return Error(Errc::unavailable, "Every third submission fails.");
    if (n % 7 == 0) return Error(Errc::kernel_failed, "Every seventh kernel fails.");
    return std::nullopt;
  });
  constexpr int threads = 4, jobs = 150;
  Scheduler scheduler =
      test::scheduler_of({first, second}, {.concurrent_jobs = 3, .placement = PlacementMode::table});
  std::atomic<int> running{threads};
  std::atomic<std::uint64_t> completed{0}, other{0};
  std::vector<std::thread> submitting;
  for (int t = 0; t < threads; ++t)
    submitting.emplace_back([&, t] {
      const auto scale = test::host_scale();
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<float> x(4, 1.0f);
      for (int i = 0; i < jobs; ++i) {
        auto ticket = scheduler.submit(
            Job(scale(x, 1.0f), random() % 2 == 0 ? workload_types::custom : workload_types::matrix),
            {.on = random() % 5 == 0 ? "vulkan:0" : ""});
        if (random() % 4 == 0) ticket.cancel();
        ++(ticket.wait() ? completed : other);
      }
      --running;
    });
  while (running > 0) {
    check_counts(scheduler.metrics());
    std::this_thread::yield();
  }
  for (auto& thread : submitting) thread.join();
  const SchedulerMetrics m = scheduler.metrics();
  check_counts(m);
  CHECK(m.submitted == threads * jobs);
  CHECK(m.queued == 0);
  CHECK(m.running == 0);
  CHECK(m.completed == completed);
  CHECK(m.failed + m.cancelled + m.timed_out == other);
  CHECK(m.failed > 0);
  CHECK(m.fallbacks > 0);
  CHECK(first->buffers_alive() == 0);
  CHECK(second->buffers_alive() == 0);
}

TEST_CASE("closing settles queued jobs and waits for a job at any step", "[scheduler]") {
  for (const Step step : test::ScriptedDevice::steps) {
    INFO("step " << static_cast<int>(step));
    const Scripted device = scripted("cuda:0");
    StopAt stop;
    device->set_script(stop.script(step));
    Scheduler scheduler = test::scheduler_of({device}, {}, {.lanes_per_device = 1});
    std::vector<float> x(1, 1.0f), y(1, 1.0f);
    auto running = scheduler.submit(test::host_scale()(x, 2.0f));
    stop.await();
    auto queued = scheduler.submit(test::host_scale()(y, 2.0f));
    std::promise<Errc> settled;
    queued.then([&](const Result<Outcome>& r) { settled.set_value(r.error().code()); });
    std::thread closing([&] { scheduler.close(); });
    CHECK(settled.get_future().get() == Errc::closed);  // while the other job still runs
    CHECK_FALSE(running.ready());
    stop.open();
    closing.join();
    CHECK(running.ready());
    CHECK(running.wait());
    CHECK(scheduler.run(test::host_scale()(y, 2.0f)).error() == Errc::closed);
  }
}

TEST_CASE("a job that is cancelled while its attempt fails does not wait for its next device",
          "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  StopAt stop;
  first->set_script([at_submit = stop.script(Step::submit)](Step now) -> std::optional<Error> {
    (void)at_submit(now);
    if (now != Step::submit) return std::nullopt;
    return Error(Errc::internal, "The script fails this step.");
  });
  test::Machine machine({first, second}, {.committed_per_lane = 1}, 1);  // no job is staged
  second->hold();
  std::vector<float> x(10, 1.0f), y(10, 1.0f);
  auto blocker = machine.scheduler.submit(test::host_scale()(x, 2.0f), {.on = "vulkan"});
  test::await([&] { return second->held() == 1; });
  auto ticket = machine.scheduler.submit(test::host_scale()(y, 2.0f));
  stop.await();
  ticket.cancel();
  CHECK_FALSE(ticket.ready());
  const auto code = std::make_shared<std::promise<Errc>>();
  auto settled = code->get_future();
  ticket.then([code](const Result<Outcome>& result) {
    code->set_value(result ? Errc::internal : result.error().code());
  });
  stop.open();
  const bool at_once = settled.wait_for(60s) == std::future_status::ready;
  CHECK(at_once);
  second->release();
  CHECK(blocker.wait());
  CHECK(settled.get() == Errc::cancelled);
  CHECK(y == std::vector<float>(10, 1.0f));
  check_counts(machine.scheduler.metrics());
}
