// Waiting until a scheduler is idle.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/worker.hpp"
#include "rig.hpp"
#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::Busy;
using test::Latch;
using test::Machine;
using test::scripted;
using test::StopPoint;

namespace {

/// Waits on a thread until a scheduler is idle.
class Quiescing {
 public:
  explicit Quiescing(Scheduler& scheduler, Deadline deadline = {})
      : thread_([&scheduler, deadline, this] { result_ = scheduler.quiesce(deadline); }) {}
  /// Returns whether it waits. Gives it the time to return by mistake.
  bool waits() const {
    thread_.await_parked();
    return !thread_.has_ended();
  }
  Result<void> get() {
    thread_.join();
    return *std::move(result_);
  }

 private:
  std::optional<Result<void>> result_;
  test::Thread thread_;
};

/// Returns an object whose destruction stops at `point`.
std::shared_ptr<int> stops_when_destroyed(StopPoint& point) {
  return std::shared_ptr<int>(new int(0), [&point](const int* object) {
    point.pass();
    delete object;
  });
}

Array<float> one_float(Runtime& runtime) { return runtime.array(std::vector<float>(1, 1.0f)); }

}  // namespace

TEST_CASE("an idle scheduler is quiet at once, also before its first job and after it closed",
          "[scheduler][quiesce]") {
  Runtime runtime = test::cpu_runtime();
  CHECK(runtime.scheduler().quiesce(0ms));
  std::vector<float> x(1, 1.0f);
  REQUIRE(runtime.run(test::host_scale()(x, 2.0f)));
  CHECK(runtime.scheduler().quiesce());
  runtime.close();
  CHECK(runtime.scheduler().quiesce(0ms));
}

TEST_CASE("quiesce waits for jobs that run and wait, and for those that are submitted meanwhile",
          "[scheduler][quiesce]") {
  Busy busy;
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  Ticket queued = busy.runtime.submit(test::host_scale()(x, 2.0f));
  Quiescing quiescing(busy.runtime.scheduler());
  CHECK(quiescing.waits());
  Ticket later = busy.runtime.submit(test::host_scale()(y, 2.0f));
  busy.release();
  CHECK(quiescing.get());
  CHECK((queued.ready() && later.ready()));
  const SchedulerMetrics jobs = busy.runtime.metrics().jobs;
  CHECK((jobs.completed == 3 && jobs.queued == 0 && jobs.running == 0));
  CHECK(busy.runtime.metrics().pool.active == 0);
}

TEST_CASE("quiesce waits for the functions of tickets", "[scheduler][quiesce]") {
  Runtime runtime = test::cpu_runtime();
  StopPoint function;
  std::atomic<bool> has_returned{false};
  const auto then = [&](const Result<Outcome>&) {
    function.pass();
    has_returned = true;
  };
  std::vector<float> x(1, 1.0f);
  Latch latch;
  Ticket ticket = runtime.submit(latch.kernel(x));
  latch.await();
  ticket.then(then);
  SECTION("of a job that completes") {
    latch.open();
    function.await();
    Quiescing quiescing(runtime.scheduler());
    CHECK(ticket.ready());
    CHECK(quiescing.waits());
    function.open();
    CHECK(quiescing.get());
    CHECK(has_returned);
  }
  SECTION("of a job that a thread of the application cancels") {
    std::vector<float> y(1, 1.0f);
    Ticket cancelled = runtime.submit(test::host_scale()(y, 1.0f), {.after = {ticket}});
    cancelled.then(then);
    test::Thread cancels([&] { cancelled.cancel(); });
    function.await();
    latch.open();
    Quiescing quiescing(runtime.scheduler());
    CHECK(quiescing.waits());
    function.open();
    CHECK(quiescing.get());
    CHECK(has_returned);
  }
}

TEST_CASE("quiesce waits while a worker holds the last handle of a settled job", "[scheduler][quiesce]") {
  StopPoint destruction;
  SECTION("which holds a host kernel and the objects that this has captured") {
    const auto device = scripted("cuda:0");
    Machine machine({device});
    device->hold();
    const auto x = machine.array(std::vector<float>(1, 1.0f));
    auto captured = stops_when_destroyed(destruction);
    auto kernel = test::on_host("captures", [captured](Range, std::span<float>) {});
    captured.reset();
    Job job = kernel(x);
    kernel = test::on_host("other", [](Range, std::span<float>) {});
    (void)machine.scheduler.submit(std::move(job));  // its ticket is dropped at once
    await([&] { return device->held() != 0; });
    device->release();
    destruction.await();
    await([&] { return machine.scheduler.metrics().completed == 1; });
    Quiescing quiescing(machine.scheduler);
    CHECK(quiescing.waits());
    destruction.open();
    CHECK(quiescing.get());
  }
  SECTION("which holds a function of its ticket") {
    Runtime runtime = test::cpu_runtime();
    const auto x = one_float(runtime);
    Latch latch;
    Ticket ticket = runtime.submit(latch.kernel(x));
    auto captured = stops_when_destroyed(destruction);
    ticket.then([captured](const Result<Outcome>&) {});
    captured.reset();
    latch.open();
    destruction.await();
    Quiescing quiescing(runtime.scheduler());
    CHECK(quiescing.waits());
    destruction.open();
    CHECK(quiescing.get());
  }
}

TEST_CASE("quiesce waits for the submission of a job that timed out", "[scheduler][quiesce]") {
  ManualClock clock;
  const auto device = scripted("cuda:0");
  Machine machine({device}, {.clock = &clock});
  device->hold();
  std::vector<float> x(1, 1.0f);
  Ticket ticket = machine.scheduler.submit(test::host_scale()(x, 2.0f), {.time_limit = 1h});
  await([&] { return device->held() == 1; });
  clock.advance(1h);
  CHECK(test::settled(ticket) == Errc::timed_out);
  Quiescing quiescing(machine.scheduler);
  CHECK(quiescing.waits());
  device->release();
  CHECK(quiescing.get());
}

TEST_CASE("quiesce forgets the entries of cancelled jobs in the queues", "[scheduler][quiesce]") {
  Busy busy;
  auto captured = std::make_shared<int>(0);
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  const Ticket next = busy.runtime.submit(test::host_scale()(y, 2.0f));
  std::optional<Ticket> last;  // the entries of the next and of the last job are removed at once
  {
    const auto kernel = test::on_host("captures", [captured](Range, std::span<float>) {});
    Ticket cancelled = busy.runtime.submit(kernel(one_float(busy.runtime)));
    last.emplace(busy.runtime.submit(test::host_scale()(x, 2.0f)));
    cancelled.cancel();
  }
  CHECK(captured.use_count() == 2);  // its queue has it still
  busy.release();
  CHECK(busy.runtime.scheduler().quiesce());
  CHECK(captured.use_count() == 1);
}

TEST_CASE("quiesce returns at its deadline and names the number of jobs that are left",
          "[scheduler][quiesce]") {
  Busy busy;
  std::vector<float> x(1, 1.0f);
  Ticket queued = busy.runtime.submit(test::host_scale()(x, 2.0f));
  Quiescing quiescing(busy.runtime.scheduler(), 1h);
  CHECK(quiescing.waits());
  busy.clock.advance(1h);
  const Result<void> late = quiescing.get();
  REQUIRE_FALSE(late);
  CHECK(late.error() == Errc::timed_out);
  CHECK(late.error().sentence() ==
        "2 jobs were left when the deadline of quiescing passed: 1 waited, 1 ran.");
  queued.cancel();
  busy.release();
  CHECK(busy.runtime.scheduler().quiesce());
}

TEST_CASE("a thread that runs a job or a function of a ticket cannot quiesce", "[scheduler][quiesce]") {
  Runtime runtime = test::cpu_runtime();
  std::optional<Result<void>> in_job, in_function, at_once, in_cancellation, in_worker;
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  const auto kernel =
      test::on_host("quiesces", [&](Range, std::span<float>) { in_job = runtime.scheduler().quiesce(); });
  Ticket ticket = runtime.submit(kernel(x));
  ticket.then([&](const Result<Outcome>&) { in_function = runtime.scheduler().quiesce(); });
  CHECK_FALSE(test::settled(ticket));
  ticket.then([&](const Result<Outcome>&) { at_once = runtime.scheduler().quiesce(); });
  REQUIRE(at_once);  // the job has settled
  REQUIRE(runtime.scheduler().quiesce());
  Latch latch;
  Ticket blocks = runtime.submit(latch.kernel(x));
  Ticket cancelled = runtime.submit(test::host_scale()(y, 1.0f), {.after = {blocks}});
  cancelled.then([&](const Result<Outcome>&) { in_cancellation = runtime.scheduler().quiesce(); });
  cancelled.cancel();
  latch.open();
  {
    const auto worker = base::Worker::start("test", [&] { in_worker = runtime.scheduler().quiesce(); });
  }
  for (const auto* const result : {&in_job, &in_function, &at_once, &in_cancellation, &in_worker}) {
    REQUIRE(result->has_value());
    REQUIRE_FALSE(**result);
    CHECK((*result)->error() == Errc::invalid_argument);
    CHECK((*result)->error().sentence().find("wait for itself") != std::string::npos);
  }
  CHECK(runtime.scheduler().quiesce());
}

TEST_CASE("quiesce waits for a function of a ticket that an application's thread calls at once",
          "[scheduler][quiesce]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  Ticket ticket = runtime.submit(test::host_scale()(x, 2.0f));
  REQUIRE(ticket.wait());
  StopPoint point;
  test::Thread calls([&] { ticket.then([&](const Result<Outcome>&) { point.pass(); }); });
  point.await();
  Quiescing quiescing(runtime.scheduler());
  CHECK(quiescing.waits());
  point.open();
  CHECK(quiescing.get());
  calls.join();
}

TEST_CASE("nothing of a job is alive once quiesce has returned", "[scheduler][quiesce]") {
  const auto device = scripted("cuda:0");
  ManualClock clock;
  Machine machine({device, scripted("vulkan:0")}, {.concurrent_jobs = 2, .clock = &clock});
  std::minstd_rand random(5);
  for (int round = 0; round < test::rounds(200); ++round) {
    const auto captured = std::make_shared<int>(0);
    std::atomic<int> calls{0};
    constexpr int jobs = 8;
    bool is_held = random() % 2 == 0;
    if (is_held) device->hold();
    {
      std::vector<Ticket> tickets;
      for (int i = 0; i < jobs; ++i) {
        const auto x = machine.array(std::vector<float>(1, 1.0f));
        JobOptions options{.time_limit = 1h};
        if (!tickets.empty() && random() % 3 == 0) options.after = {tickets.back()};
        tickets.push_back(machine.scheduler.submit(
            test::on_host("captures", [captured](Range, std::span<float>) {})(x), options));
        tickets.back().then([captured, &calls](const Result<Outcome>&) { ++calls; });
        if (random() % 4 == 0) tickets.back().cancel();
      }
      if (is_held && random() % 2 == 0) clock.advance(1h);
      test::Thread releases([&] { device->release(); });
      if (random() % 2 == 0) tickets.clear();
      REQUIRE(machine.scheduler.quiesce());
    }
    CHECK(calls == jobs);
    const SchedulerMetrics metrics = machine.scheduler.metrics();
    CHECK((metrics.queued == 0 && metrics.running == 0));
    test::check_counts(metrics);
    if (captured.use_count() != 1) FAIL("round " << round << ": " << captured.use_count() - 1 << " handles");
  }
}
