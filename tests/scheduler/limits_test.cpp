// `start_by`, time limits and deadlines, on a clock that the test moves.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Busy;
using test::settled;
using Step = test::ScriptedDevice::Step;

namespace {

/// A kernel that takes `time` of a clock.
Kernel<ReadWrite<float>> takes(ManualClock& clock, Duration time) {
  return test::on_host("takes", [&clock, time](Range, std::span<float> x) {
    clock.advance(time);
    x[0] += 1.0f;
  });
}

}  // namespace

TEST_CASE("a job that waits for its predecessor past its start_by times out, and so does its reader",
          "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(2, &clock);
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array<float>(4);
  auto first = runtime.submit(latch.kernel(x), {.time_limit = Duration::max()});
  latch.await();
  auto late = runtime.submit(test::host_scale()(x, 2.0f), {.start_by = 1h});
  auto reader = runtime.submit(test::copy()(x, y));
  clock.advance(1h);
  latch.open();
  CHECK_FALSE(settled(first));
  CHECK(settled(late) == Errc::timed_out);
  CHECK(settled(reader) == Errc::timed_out);
  CHECK(y.read().error() == Errc::timed_out);
}

TEST_CASE("a job that times out while it waits for its predecessor fails its followers as timed_out",
          "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(2, &clock);
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array<float>(4),
       z = runtime.array<float>(4);
  auto first = runtime.submit(latch.kernel(x), {.time_limit = Duration::max()});
  latch.await();
  auto late = runtime.submit(test::host_scale()(x, 2.0f), {.start_by = 1h, .tag = "late"});
  auto reader = runtime.submit(test::copy()(x, y));
  auto behind = runtime.submit(test::copy()(y, z), {.after = {late}});
  clock.advance(1h);
  const auto expired = late.wait();
  REQUIRE(expired.error() == Errc::timed_out);
  CHECK(late.ready());
  CHECK_FALSE(reader.ready());  // it follows the first job too
  CHECK(x.read(0s).error() == Errc::timed_out);
  latch.open();
  CHECK_FALSE(settled(first));
  CHECK(settled(reader) == Errc::timed_out);
  CHECK(settled(behind) == Errc::timed_out);
  for (const Error& error :
       {reader.wait().error(), behind.wait().error(), x.read().error(), y.read().error(), z.read().error()})
    CHECK(error.sentence() == "Job 'host_scale' (tag 'late') did not start in time.");
  CHECK(runtime.metrics().jobs.cancelled == 0);
}

TEST_CASE("a job that settles while its last predecessor completes fails its followers with its error",
          "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(2, &clock);
  for (int i = 0; i < test::rounds(500); ++i) {
    test::Latch latch;
    auto x = runtime.array(std::vector<float>(1, 1.0f)), y = runtime.array<float>(1);
    auto first = runtime.submit(latch.kernel(x), {.time_limit = Duration::max()});
    latch.await();
    auto late = runtime.submit(test::host_scale()(x, 2.0f), {.start_by = 1h});
    auto reader = runtime.submit(test::copy()(x, y));
    clock.advance(1h);
    test::Thread opens([&] { latch.open(); });
    const auto expired = late.wait();
    opens.join();
    const auto read = reader.wait();
    CHECK(expired.error() == Errc::timed_out);
    CHECK(read.error() == Errc::timed_out);
    CHECK(y.read().error().sentence() == expired.error().sentence());
  }
}

TEST_CASE("a job with a start_by of now or of the past never starts", "[scheduler]") {
  ManualClock clock;
  clock.advance(1h);
  Runtime runtime = test::cpu_runtime(4, &clock);
  std::vector<float> x(1, 1.0f);
  for (const Deadline start_by :
       {Deadline(0ns), Deadline(-1h), Deadline(clock.now()), Deadline(Instant{}), Deadline(Instant::min())}) {
    CHECK(runtime.run(test::host_scale()(x, 2.0f), {.start_by = start_by}).error() == Errc::timed_out);
    auto ticket = runtime.submit(test::host_scale()(x, 2.0f), {.start_by = start_by});
    CHECK(settled(ticket) == Errc::timed_out);
  }
  CHECK(x[0] == 1.0f);
  CHECK(runtime.metrics().jobs.timed_out == 10);
}

TEST_CASE("a start_by that never comes does not limit a job", "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  auto never = busy.runtime.submit(test::host_scale()(x, 2.0f), {.start_by = Deadline::never()});
  auto longest = busy.runtime.submit(test::host_scale()(y, 2.0f), {.start_by = Duration::max()});
  busy.clock.advance(24h * 365);
  busy.release();
  CHECK_FALSE(settled(never));
  CHECK_FALSE(settled(longest));
}

TEST_CASE("a start_by that passes while the job runs changes nothing", "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(4, &clock);
  std::vector<float> x(1, 1.0f);
  CHECK(runtime.run(takes(clock, 2s)(x), {.start_by = 1s}));
  CHECK(x[0] == 2.0f);
}

TEST_CASE("a time limit counts from the start of the job, not from its submission", "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f);
  auto ticket = busy.runtime.submit(takes(busy.clock, 999ms)(x), {.time_limit = 1s});
  busy.clock.advance(1h);
  busy.release();
  CHECK_FALSE(settled(ticket));
}

TEST_CASE("a host function that ends at its time limit has timed out", "[scheduler]") {
  for (const Duration spare : {Duration(1ns), Duration(0ns), Duration(-1ns)}) {
    INFO(spare.count() << " ns before the limit");
    ManualClock clock;
    Runtime runtime = test::cpu_runtime(4, &clock);
    std::vector<float> x(1, 1.0f);
    const auto done = runtime.run(takes(clock, 1s - spare)(x), {.time_limit = 1s});
    if (spare > 0ns)
      CHECK(done);
    else
      CHECK(done.error() == Errc::timed_out);
  }
}

TEST_CASE("the scheduler's time limit holds for jobs without a limit of their own", "[scheduler]") {
  ManualClock clock;
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.job_time_limit = 1s}, .clock = &clock})
          .value();
  std::vector<float> x(1, 1.0f);
  const auto slow = takes(clock, 2s);
  CHECK(runtime.run(slow(x)).error() == Errc::timed_out);
  CHECK(runtime.run(slow(x), {.time_limit = 3s}));
  CHECK(runtime.run(slow(x), {.time_limit = Duration::max()}));
  CHECK(runtime.run(takes(clock, 500ms)(x), {.time_limit = 400ms}).error() == Errc::timed_out);
}

TEST_CASE("the time limit of a sequence holds for all its steps together", "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(4, &clock);
  std::vector<float> x(1, 1.0f);
  const auto step = takes(clock, 400ms);
  const auto steps = [&](std::size_t n) {
    return Job::sequence("steps", workload_types::custom, step(x), std::vector<Call>(n - 1, step(x)));
  };
  CHECK(runtime.run(steps(2), {.time_limit = 1s}));
  CHECK(runtime.run(steps(3), {.time_limit = 1s}).error() == Errc::timed_out);
}

TEST_CASE("the time limit of a job includes the devices that failed it", "[scheduler]") {
  for (const Duration limit : {Duration(1s), Duration(2s)}) {
    ManualClock clock;
    const auto first = test::scripted("cuda:0"), second = test::scripted("vulkan:0");
    first->set_script([&](Step step) -> std::optional<Error> {
      if (step != Step::submit) return std::nullopt;
      clock.advance(700ms);
      return Error(Errc::unavailable, "The script fails this step.");
    });
    test::Machine machine({first, second}, {.clock = &clock});
    std::vector<float> x(1, 1.0f);
    const auto done = machine.scheduler.run(takes(clock, 700ms)(x), {.time_limit = limit});
    if (limit == 1s)
      CHECK(done.error() == Errc::timed_out);
    else
      CHECK(done);
  }
}

TEST_CASE("a host function sees in its StopToken that the time limit has passed on the scheduler's clock",
          "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(2, &clock);
  std::atomic<bool> entered{false}, early{false};
  const auto endless = Kernel<ReadWrite<float>>::make(
      {.name = "endless", .sources = {host([&](Range, std::span<float>, StopToken stop) {
                            early = stop.stop_requested();
                            entered = true;
                            while (!stop.stop_requested()) std::this_thread::yield();
                          })}});
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit((*endless)(x), {.time_limit = 1h});
  while (!entered) std::this_thread::yield();
  clock.advance(1h - 1ns);
  CHECK_FALSE(early);
  CHECK_FALSE(ticket.ready());
  clock.advance(1ns);
  CHECK(settled(ticket) == Errc::timed_out);
}

TEST_CASE("a wait that times out leaves its job as it was", "[scheduler]") {
  Busy busy;
  std::vector<float> x(1, 1.0f);
  auto ticket = busy.runtime.submit(test::host_scale()(x, 2.0f));
  for (const Deadline deadline : {Deadline(0ms), Deadline(-1s), Deadline(1ms), Deadline(Instant::min())})
    CHECK(ticket.wait(deadline).error() == Errc::timed_out);
  CHECK_FALSE(ticket.ready());
  const SchedulerMetrics jobs = busy.runtime.metrics().jobs;
  CHECK(jobs.timed_out == 0);
  CHECK(jobs.queued == 1);
  busy.release();
  CHECK_FALSE(settled(ticket));
  CHECK(x[0] == 2.0f);
}

TEST_CASE("a wait with a deadline of the past returns the result of a job that has settled", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  REQUIRE_FALSE(settled(ticket));
  CHECK(ticket.wait(Deadline(Instant::min())));
  CHECK(ticket.wait(-1s));
}
