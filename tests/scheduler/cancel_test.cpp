// Cancelling jobs at each stage.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::Busy;
using test::Machine;
using test::scripted;
using test::settled;
using Step = test::ScriptedDevice::Step;

namespace {

/// Completes the submissions in flight after the first `kept` ones, as far as they wait for none of
/// these.
void release_others(test::ScriptedDevice& device, std::size_t kept) {
  for (std::size_t i = kept; i < device.held();) i = device.release_at(i) ? kept : i + 1;
}

}  // namespace

TEST_CASE("a job that is cancelled before it starts never runs, however often it is cancelled",
          "[scheduler]") {
  Busy busy;
  std::atomic<int> calls{0};
  const auto counts = test::on_host("counts", [&](Range, std::span<float>) { ++calls; });
  std::vector<float> x(1, 1.0f);
  auto ticket = busy.runtime.submit(counts(x));
  for (int i = 0; i < 3; ++i) ticket.cancel();
  CHECK(ticket.wait().error() == Errc::cancelled);
  busy.release();
  std::vector<float> y(1, 1.0f);
  CHECK(busy.runtime.run(test::host_scale()(y, 2.0f)));  // the queue is empty by now
  CHECK(calls == 0);
  CHECK(busy.runtime.metrics().jobs.cancelled == 1);
}

TEST_CASE("a host function that ignores its StopToken ends, and its result is dropped", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  auto ticket = runtime.submit(latch.kernel(x));
  latch.await();
  ticket.cancel();
  ticket.cancel();
  CHECK(ticket.wait(1ms).error() == Errc::timed_out);  // the function still uses its memory
  CHECK_FALSE(ticket.ready());
  latch.open();
  CHECK(settled(ticket) == Errc::cancelled);
  CHECK(x.read().error() == Errc::cancelled);
  CHECK(runtime.metrics().jobs.cancelled == 1);
  CHECK(runtime.metrics().jobs.completed == 0);
}

TEST_CASE("cancelling a job that has completed keeps its result and its arrays", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  REQUIRE_FALSE(settled(ticket));
  ticket.cancel();
  CHECK(ticket.wait());
  CHECK(test::contents(x) == std::vector<float>{2.0f});
}

TEST_CASE("cancelling a job that has failed keeps its error", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(
      test::on_host("throws", [](Range, std::span<float>) { throw std::runtime_error("no"); })(x));
  REQUIRE(settled(ticket) == Errc::kernel_failed);
  ticket.cancel();
  CHECK(ticket.wait().error() == Errc::kernel_failed);
  CHECK(runtime.metrics().jobs.cancelled == 0);
  CHECK(runtime.metrics().jobs.failed == 1);
}

TEST_CASE("the followers of a cancelled job fail as cancelled until a job overwrites the array",
          "[scheduler]") {
  Busy busy;
  Runtime& runtime = busy.runtime;
  auto x = runtime.array(std::vector<float>(4, 1.0f)), y = runtime.array(std::vector<float>(4, 2.0f)),
       z = runtime.array(std::vector<float>(4, 3.0f));
  auto producer = runtime.submit(test::host_scale()(x, 2.0f));
  auto reader = runtime.submit(test::copy()(x, y));
  auto far = runtime.submit(test::host_scale()(y, 2.0f));
  auto mends = runtime.submit(test::copy()(z, x));
  auto after = runtime.submit(test::host_scale()(x, 2.0f));
  producer.cancel();
  CHECK(producer.ready());
  busy.release();
  CHECK(settled(reader) == Errc::cancelled);
  CHECK(settled(far) == Errc::cancelled);
  CHECK_FALSE(settled(mends));
  CHECK_FALSE(settled(after));
  CHECK(y.read().error() == Errc::cancelled);
  CHECK(test::contents(x) == std::vector<float>(4, 6.0f));
}

TEST_CASE("cancelling a reader fails its output and not its input", "[scheduler]") {
  Busy busy;
  auto x = busy.runtime.array(std::vector<float>(4, 1.0f)), y = busy.runtime.array(std::vector<float>(4));
  auto reader = busy.runtime.submit(test::copy()(x, y));
  auto writer = busy.runtime.submit(test::host_scale()(x, 2.0f));
  reader.cancel();
  busy.release();
  CHECK_FALSE(settled(writer));
  CHECK(test::contents(x) == std::vector<float>(4, 2.0f));
  CHECK(y.read().error() == Errc::cancelled);
}

TEST_CASE("a continuation may cancel another job", "[scheduler]") {
  Busy busy;
  auto held = busy.runtime.array(std::vector<float>(1, 1.0f));
  std::vector<float> y(1, 5.0f);
  auto view = held.write();
  auto second = busy.runtime.submit(test::copy()(held, y));  // waits for the view
  std::promise<bool> cancelled;
  busy.blocker.then([&](const Result<Outcome>&) {
    second.cancel();
    cancelled.set_value(second.ready());
  });
  busy.latch.open();
  CHECK(cancelled.get_future().get());
  CHECK(second.wait().error() == Errc::cancelled);
  CHECK(y[0] == 5.0f);
}

TEST_CASE("a host function may cancel its own job", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::promise<Ticket*> own;
  std::promise<bool> has_seen_stop;
  auto ticket_of_function = own.get_future();
  const auto cancels = Kernel<ReadWrite<float>>::make(
      {.name = "cancels", .sources = {host([&](Range, std::span<float>, StopToken stop) {
                            ticket_of_function.get()->cancel();
                            has_seen_stop.set_value(stop.stop_requested());
                          })}});
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit((*cancels)(x));
  own.set_value(&ticket);
  CHECK(has_seen_stop.get_future().get());
  CHECK(settled(ticket) == Errc::cancelled);
}

TEST_CASE("a cancelled job in the queue does not hold up the jobs behind it", "[scheduler]") {
  Busy busy;
  std::vector<std::vector<float>> memory(100, std::vector<float>(1, 1.0f));
  std::vector<Ticket> tickets;
  for (auto& x : memory) tickets.push_back(busy.runtime.submit(test::host_scale()(x, 2.0f)));
  for (std::size_t i = 0; i < tickets.size(); i += 2) tickets[i].cancel();
  CHECK(busy.runtime.metrics().jobs.queued == 50);
  busy.release();
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const auto error = settled(tickets[i]);
    CHECK(error == (i % 2 == 0 ? std::optional(Errc::cancelled) : std::nullopt));
    CHECK(memory[i][0] == (i % 2 == 0 ? 1.0f : 2.0f));
  }
}

TEST_CASE("a job that races with its cancellation completes wholly or is cancelled", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  const auto scale = test::host_scale();
  std::mt19937 random(1);
  int completed = 0;
  constexpr int jobs = test::rounds(4000);
  for (int i = 0; i < jobs; ++i) {
    std::vector<float> x(64, 1.0f);
    auto ticket = runtime.submit(scale(x, 2.0f));
    for (auto spins = random() % 2000; spins > 0; --spins)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    ticket.cancel();
    const auto done = ticket.wait();
    const bool is_whole = x == std::vector<float>(64, 1.0f) || x == std::vector<float>(64, 2.0f);
    REQUIRE(is_whole);
    if (done) {
      ++completed;
      REQUIRE(x[0] == 2.0f);
    } else {
      REQUIRE(done.error() == Errc::cancelled);
    }
  }
  const SchedulerMetrics metrics = runtime.metrics().jobs;
  CHECK(metrics.completed == static_cast<std::uint64_t>(completed));
  CHECK(metrics.cancelled == static_cast<std::uint64_t>(jobs - completed));
}

TEST_CASE("a job that is cancelled in flight settles at once, and its memory may end",
          "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  ManualClock clock;
  Machine machine({device}, {.clock = &clock}, 1);
  device->hold_commands();
  auto x = std::make_unique<std::vector<float>>(1000, 1.0f);
  std::promise<Errc> then;
  auto ticket = machine.scheduler.submit(test::host_scale()(*x, 2.0f), {.time_limit = 2h, .tag = "long"});
  await([&] { return device->held() == 1; });
  ticket.then([&](const Result<Outcome>& result) { then.set_value(result.error().code()); });
  clock.advance(1h);
  ticket.cancel();  // the thread that has submitted its work may still be about to leave it
  CHECK(then.get_future().get() == Errc::cancelled);
  CHECK(ticket.wait().error().sentence() == "Job 'host_scale' (tag 'long') was cancelled.");
  CHECK(*x == std::vector<float>(1000, 1.0f));
  x.reset();  // the work in flight has memory of its own
  ticket.cancel();
  CHECK(machine.scheduler.quiesce(0s).error() == Errc::timed_out);  // the device will call back
  device->release();
  CHECK(machine.scheduler.quiesce(60s));
  std::vector<float> y(1, 3.0f);
  CHECK(machine.scheduler.run(test::host_scale()(y, 2.0f)));
  CHECK(y == std::vector<float>{6.0f});
  CHECK(device->count(Step::create_lane) == 2);
  const auto metrics = machine.scheduler.metrics();
  test::check_counts(metrics);
  CHECK(metrics.cancelled == 1);
}

TEST_CASE("the end of the ticket of a job in flight does not wait for its device", "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  device->hold_commands();
  {
    std::vector<float> x(1000, 1.0f);
    auto ticket = machine.scheduler.submit(test::host_scale()(x, 2.0f));
    await([&] { return device->held() == 1; });
  }
  CHECK(device->held() == 1);
  CHECK(machine.scheduler.metrics().cancelled == 1);
  device->release();
}

TEST_CASE("a lane that a cancelled job has left makes room for the next job", "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  Machine machine({device}, {.committed_per_lane = 1, .batch_limit = 1}, 1);
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  device->hold();
  auto first = machine.scheduler.submit(test::host_scale()(x, 2.0f));
  await([&] { return device->held() == 1; });
  auto second = machine.scheduler.submit(test::host_scale()(y, 2.0f));
  CHECK(machine.scheduler.metrics().queued == 1);
  first.cancel();
  await([&] { return device->held() == 2; });
  device->release();
  CHECK_FALSE(settled(second));
  CHECK(y == std::vector<float>{2.0f});
}

TEST_CASE("an array that a cancelled job may still write has failed, and its next writer follows that work",
          "[scheduler][flight]") {
  for (const bool times_out : {false, true}) {
    INFO((times_out ? "out of time" : "cancelled"));
    const auto device = scripted("cuda:0");
    ManualClock clock;
    Machine machine({device}, {.clock = &clock});
    auto x = machine.array(std::vector<float>(4, 1.0f)), y = machine.array(std::vector<float>(4, 2.0f)),
         z = machine.array(std::vector<float>(4, 3.0f));
    for (const auto& array : {x, y, z})  // all arrays are on the device
      REQUIRE(machine.scheduler.run(test::host_scale()(array, 2.0f)));
    device->hold_commands();
    auto job = machine.scheduler.submit(test::host_scale()(x, 10.0f), {.time_limit = 1h});
    await([&] { return device->held() == 1; });
    auto reader = machine.scheduler.submit(test::copy()(x, y));
    if (times_out)
      clock.advance(1h);
    else
      job.cancel();
    const Errc code = times_out ? Errc::timed_out : Errc::cancelled;
    CHECK(settled(job) == code);
    CHECK(settled(reader) == code);
    CHECK(x.read(0s).error() == code);
    CHECK(y.read(0s).error() == code);
    auto writer = machine.scheduler.submit(test::copy()(z, x));
    await([&] { return device->held() >= 2; });
    release_others(*device, 1);
    CHECK_FALSE(writer.ready());
    CHECK(device->held() >= 2);
    device->release();
    CHECK_FALSE(settled(writer));
    CHECK(test::contents(x) == std::vector<float>(4, 6.0f));
  }
}

TEST_CASE("the host mends an array that a cancelled job may still write", "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  auto x = machine.array(std::vector<float>(4, 1.0f));
  REQUIRE(machine.scheduler.run(test::host_scale()(x, 2.0f)));
  device->hold_commands();
  auto job = machine.scheduler.submit(test::host_scale()(x, 10.0f));
  await([&] { return device->held() == 1; });
  job.cancel();
  for (float& value : x.write().value()) value = 7.0f;
  auto next = machine.scheduler.submit(test::host_scale()(x, 2.0f));
  await([&] { return device->held() >= 2; });
  release_others(*device, 1);
  CHECK_FALSE(next.ready());
  device->release();
  CHECK_FALSE(settled(next));
  CHECK(test::contents(x) == std::vector<float>(4, 14.0f));
}

TEST_CASE("the run of a plan follows the work in flight of a run that was cancelled", "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  std::vector<float> x(16, 1.0f);
  Graph graph;
  graph.add(test::host_scale()(x, 2.0f));
  auto plan = graph.compile(machine.scheduler, {.name = "plan"});
  REQUIRE(plan);
  device->hold_commands();
  Ticket first = plan->run();
  await([&] { return machine.scheduler.metrics().running == 1 && device->held() >= 2; });
  const std::size_t held = device->held();
  first.cancel();
  CHECK(first.wait().error().sentence() == "Job 'plan' was cancelled.");
  CHECK(x == std::vector<float>(16, 1.0f));
  Ticket second = plan->run();
  await([&] { return device->held() > held; });
  release_others(*device, held);
  CHECK(device->held() > held);
  CHECK_FALSE(second.ready());
  device->release();
  CHECK_FALSE(settled(second));
  CHECK(x == std::vector<float>(16, 2.0f));
}

TEST_CASE("a cancelled job is cancelled, also if its time limit passes or its device fails it",
          "[scheduler][flight]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(2, &clock);
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f)), y = runtime.array(std::vector<float>(1, 1.0f));
  auto ticket = runtime.submit(latch.kernel(x), {.time_limit = 1h});
  latch.await();
  ticket.cancel();
  clock.advance(2h);
  latch.open();
  CHECK(settled(ticket) == Errc::cancelled);
  CHECK(x.read().error() == Errc::cancelled);

  test::StopPoint inside;
  auto throwing = runtime.submit(test::on_host("throws", [&](Range, std::span<float>) {
    inside.pass();
    throw std::runtime_error("stopped");
  })(y));
  inside.await();
  throwing.cancel();
  inside.open();
  CHECK(settled(throwing) == Errc::cancelled);
  test::check_counts(runtime.metrics().jobs);
  CHECK(runtime.metrics().jobs.cancelled == 2);
}

TEST_CASE("a job that is cancelled while a device fails it is not tried on the next one", "[scheduler]") {
  for (const Step step : {Step::create_executable, Step::create_buffer, Step::submit}) {
    const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
    test::StopPoint point;
    first->set_script([&](Step now) -> std::optional<Error> {
      if (now != step) return std::nullopt;
      point.pass();
      return Error(Errc::internal, "The script fails this step.");
    });
    Machine machine({first, second});
    std::vector<float> x(1, 1.0f);
    auto ticket = machine.scheduler.submit(test::host_scale()(x, 2.0f));
    point.await();
    ticket.cancel();
    point.open();
    CHECK(settled(ticket) == Errc::cancelled);
    CHECK(second->count(Step::submit) == 0);
    CHECK(x == std::vector<float>{1.0f});
  }
}

TEST_CASE("a job that is cancelled while a thread submits it does not wait for its device",
          "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  test::StopPoint point;
  device->set_script([&](Step now) -> std::optional<Error> {
    if (now == Step::submit) point.pass();
    return std::nullopt;
  });
  Machine machine({device});
  device->hold_commands();
  std::vector<float> x(1, 1.0f);
  auto ticket = machine.scheduler.submit(test::host_scale()(x, 2.0f));
  point.await();
  ticket.cancel();
  CHECK_FALSE(ticket.ready());
  point.open();
  CHECK(settled(ticket) == Errc::cancelled);
  CHECK(device->held() == 1);
  device->release();
}

TEST_CASE("a job whose variants are measured can be cancelled in flight", "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  device->hold_commands();
  std::vector<float> x(1, 1.0f);
  const auto doubles = [](Range, std::span<float> values) { values[0] *= 2; };
  const auto twice = fastest_of(test::on_host("one", doubles), {test::on_host("two", doubles)});
  auto ticket = machine.scheduler.submit(twice(x));
  await([&] { return device->held() == 1; });
  (void)device->release_at(0);  // the upload
  await([&] { return device->held() == 1; });
  ticket.cancel();
  CHECK(settled(ticket) == Errc::cancelled);
  CHECK(device->held() == 1);
  device->release();
  CHECK(x == std::vector<float>{1.0f});
}

TEST_CASE("jobs in flight that race with their cancellation complete wholly or are cancelled",
          "[scheduler][flight]") {
  const auto device = scripted("cuda:0");
  Machine machine({device});
  device->hold_commands();
  std::atomic<bool> ends{false};
  test::Thread completes([&] {
    while (!ends) release_others(*device, 0);
  });
  std::mt19937 random(1);
  constexpr int jobs = test::rounds(2000);
  int completed = 0;
  for (int i = 0; i < jobs; ++i) {
    std::vector<float> x(64, 1.0f);
    auto y = machine.array(x);
    auto ticket = machine.scheduler.submit(test::host_scale()(x, 2.0f));
    auto other = machine.scheduler.submit(test::host_scale()(y, 2.0f));
    for (auto spins = random() % 20000; spins > 0; --spins)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    ticket.cancel();
    other.cancel();
    const auto done = ticket.wait();
    const bool is_whole = x == std::vector<float>(64, 1.0f) || x == std::vector<float>(64, 2.0f);
    REQUIRE(is_whole);
    REQUIRE((done ? x[0] == 2.0f : done.error() == Errc::cancelled));
    completed += done.has_value();
    if (other.wait())
      REQUIRE(test::contents(y) == std::vector<float>(64, 2.0f));
    else
      REQUIRE(y.read().error() == Errc::cancelled);
  }
  const auto metrics = machine.scheduler.metrics();
  test::check_counts(metrics);
  CHECK(metrics.completed + metrics.cancelled == 2u * jobs);
  ends = true;
  completes.join();
  device->release();
  CHECK(machine.scheduler.quiesce(60s));
}
