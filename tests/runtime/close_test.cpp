// Closing while a job, a host function or a device does not complete.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/internals.hpp"
#include "data/array_state.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/stop_point.hpp"
#include "support/thread.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// A host function that blocks until the test releases it. It lives until the process ends, because
/// its thread may too.
struct Endless : test::StopPoint {
  static Endless& make() {
    static std::vector<Endless*> all;  // reachable, for leak checkers
    return *all.emplace_back(new Endless);
  }
  /// Lets the function return, and waits until it has.
  void end() {
    open();
    await_passed(reached());
  }
  Kernel<ReadWrite<float>> kernel(const char* name = "endless") {
    return test::on_host(name, [this](Range, std::span<float>) { pass(); });
  }
};

Runtime cpu_runtime(std::optional<Duration> close_timeout = {}) {
  return Runtime::open({.pool = {.backends = {"cpu"}, .cpu_threads = 4}, .close_timeout = close_timeout})
      .value();
}

/// A lease whose lane waits for a value that no thread signals; it ends with work in flight.
void leave_in_flight(ContextPool& pool, std::string_view on, std::shared_ptr<device::Timeline>& never) {
  auto lease = pool.lease({.on = on}).value();
  never = base::state_of(lease.device())->create_timeline().value();
  auto buffer = lease.buffer<float>(4).value();
  lease.wait_for(SyncPoint(never, 1));
  lease.fill(buffer, 0);
  lease.submit();
}

/// Loops until x[0] is negative: never. llvmpipe ends a loop after 65,535 rounds, so a large grid
/// of them is dispatched.
constexpr char endless_glsl[] = R"(#version 450
layout(local_size_x = 1, local_size_y = 1) in;
layout(set = 0, binding = 0) volatile coherent buffer X { float x[]; };
void main() { while (x[0] >= 0.0) x[0] = x[0] * 0.5 + 1.0; })";
constexpr Extent3 endless_grid{65'535, 65'535, 1};

}  // namespace

TEST_CASE("closing with a deadline abandons a host function that does not return", "[.abandons]") {
  Endless& endless = Endless::make();
  const auto kernel = Kernel<Read<float>, Write<float>>::make(
      {.name = "endless",
       .sources = {host([&](Range, std::span<const float>, std::span<float>) { endless.pass(); })}});
  std::optional<Runtime> runtime = cpu_runtime();
  auto in = runtime->array(std::vector<float>(8, 1.0f)), out = runtime->array<float>(8);
  auto ticket = runtime->submit((*kernel)(in, out), {.tag = "frame 7"});
  auto follower = runtime->submit(test::host_scale()(out, 2.0f));
  std::atomic<int> told{0};
  ticket.then([&](const Result<Outcome>& result) { told += !result && result.error() == Errc::closed; });
  endless.await();

  const auto closed = runtime->close(50ms);
  REQUIRE_FALSE(closed);
  CHECK(closed.error() == Errc::timed_out);
  CHECK(closed.error().sentence() ==
        "Jobs still ran when the deadline of closing passed, and are abandoned: "
        "job 'endless' (tag 'frame 7') on 'cpu:0'.");
  CHECK(ticket.ready());
  const auto result = ticket.wait();
  CHECK(result.error() == Errc::closed);
  CHECK(result.error().sentence() ==
        "Job 'endless' (tag 'frame 7') was abandoned: it still ran on 'cpu:0' when the deadline of closing "
        "passed.");
  CHECK(told == 1);
  CHECK(ticket.explain().text().find("frame 7") != std::string::npos);
  CHECK(follower.wait().error() == Errc::closed);
  CHECK(runtime->submit(test::host_scale()(in, 2.0f)).wait().error() == Errc::closed);
  const SchedulerMetrics metrics = runtime->metrics().jobs;
  CHECK(metrics.running == 0);
  CHECK(metrics.queued == 0);
  CHECK(metrics.submitted == metrics.failed);

  // The contents of its outputs are lost, and their memory may still be in use. Its inputs are
  // intact.
  CHECK(out.read().error() == Errc::closed);
  CHECK(out.write().error() == Errc::closed);
  CHECK(in.write().error() == Errc::closed);
  const auto intact = in.read();
  REQUIRE(intact);
  CHECK((*intact)[0] == 1.0f);

  CHECK(runtime->close(50ms));  // the second time there is nothing to close
  runtime->close();
  Scheduler scheduler = runtime->scheduler();
  runtime.reset();
  endless.end();
  // It ended after all: results that were returned do not change.
  CHECK(scheduler.quiesce());
  CHECK(out.read().error() == Errc::closed);
  CHECK(ticket.wait().error() == Errc::closed);
}

TEST_CASE("tickets of abandoned jobs that borrow memory do not wait, and nested jobs are abandoned too",
          "[.abandons]") {
  Endless& endless = Endless::make();
  static std::vector<float> x(4, 1.0f), y(4, 1.0f);  // an abandoned job may use them until the process ends
  Runtime runtime = cpu_runtime();
  std::optional<Ticket> inner;
  std::atomic<bool> is_submitted{false};
  const auto blocks = endless.kernel("inner");
  auto outer = runtime.submit(test::on_host("outer", [&](Range range, std::span<float>) {
    if (range.first != 0) return;
    inner = runtime.submit(blocks(y));
    is_submitted = true;
    (void)inner->wait().has_value();
    endless
        .pass();  // otherwise it could return as soon as `inner` is abandoned, before it is abandoned itself
  })(x));
  endless.await();
  const auto closed = runtime.close(20ms);
  REQUIRE_FALSE(closed);
  CHECK(closed.error().sentence().find("job 'inner' on 'cpu:0'") != std::string::npos);
  CHECK(closed.error().sentence().find("job 'outer' on 'cpu:0'") != std::string::npos);
  CHECK(outer.wait(1s).error() == Errc::closed);
  REQUIRE(is_submitted);
  CHECK(inner->wait(1s).error() == Errc::closed);
  { const Ticket ends = std::move(outer); }
  endless.await(2);
  endless.end();
  CHECK(runtime.scheduler().quiesce());  // `inner` is in use until then
}

TEST_CASE("a job that closes its own runtime with a deadline is not abandoned", "[runtime][close]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(1, 1.0f);
  std::atomic<bool> closed{false};
  auto done = runtime
                  .submit(test::on_host("closes",
                                        [&](Range, std::span<float> values) {
                                          closed = runtime.close(5s).has_value();
                                          values[0] = 2.0f;
                                        })(x))
                  .wait();
  CHECK(done);
  CHECK(closed);
  CHECK(x[0] == 2.0f);
}

TEST_CASE("a deadline that closing keeps changes nothing", "[runtime][close]") {
  Runtime runtime = cpu_runtime();
  std::vector<float> x(100, 1.0f);
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  CHECK(runtime.close(1min));
  const auto done = ticket.wait();
  CHECK((done ? x[0] == 2.0f : done.error() == Errc::closed));
}

TEST_CASE("close_timeout bounds the destruction of a runtime whose job does not end", "[.abandons]") {
  Endless& endless = Endless::make();
  static std::vector<float> x(4, 1.0f);
  std::optional<Runtime> runtime = cpu_runtime(Duration(50ms));
  Ticket ticket = runtime->submit(endless.kernel()(x));
  endless.await();
  runtime.reset();
  CHECK(ticket.wait().error() == Errc::closed);
}  // and the process ends while the function runs

TEST_CASE("an array that an abandoned user was copying answers its error and does not wait",
          "[runtime][close]") {
  Runtime runtime = cpu_runtime();
  device::DeviceBase& device = *base::state_of(runtime.devices()[0]);
  const std::vector<float> values(4, 1.0f);
  const auto array = data::ArrayState::make(base::state_of(runtime.pool()), std::as_bytes(std::span(values)),
                                            4, ElementType::float32, sizeof(float));
  const data::IntervalSet all(array->all());
  REQUIRE(array->on_device(device, all));
  REQUIRE_FALSE(array->begin_fill(device, all, all, Instant::max())->empty());  // and no `end_fill`
  std::optional<Errc> code;
  test::Thread waits([&] { code = array->begin_fill(device, all, all, Instant::max()).error().code(); });
  waits.await_parked();
  array->abandon(Error(Errc::closed, "The user was abandoned."), Access::read);
  waits.join();
  CHECK(code == Errc::closed);
  CHECK(array->on_host(Instant::max()));  // the host's copy is valid
  CHECK_FALSE(array->failure());
  array->abandon(Error(Errc::closed, "Another user was abandoned."), Access::write);
  array->mark_written_on(nullptr);  // it ends after all
  CHECK(array->on_host(Instant::max()).error() == Errc::closed);
}

TEST_CASE("closing names the contexts whose lanes have work in flight, and abandons it", "[.abandons]") {
  const std::string on = GENERATE("cpu", "vulkan");
  CAPTURE(on);
  std::shared_ptr<device::Timeline> never;
  {
    std::optional<ContextPool> pool = ContextPool::open({.close_timeout = Duration(50ms)}).value();
    if (on == "vulkan" && !test::has_device(*pool, "vulkan")) return;
    leave_in_flight(*pool, on, never);
    const auto closed = pool->close(20ms);
    REQUIRE_FALSE(closed);
    CHECK(closed.error() == Errc::timed_out);
    CHECK(closed.error().sentence() ==
          "Work was still in flight when the deadline of closing passed, and is abandoned: context '" + on +
              ":0#0'.");
    CHECK(pool->close(20ms));  // there is no more
    pool.reset();
  }
  CHECK(never->signal(1));  // the device still is there

  std::shared_ptr<device::Timeline> unheard;
  {
    ContextPool pool = ContextPool::open({.close_timeout = Duration(20ms)}).value();
    leave_in_flight(pool, on, unheard);
  }  // without `close`
  CHECK(unheard->signal(1));
  CHECK(ContextPool::open({.close_timeout = Duration(-1)}).error().sentence() ==
        "The close timeout (-1e-09 s) is negative.");
}

TEST_CASE("by default a pool waits 10 s for a GPU that does not complete its work", "[.abandons]") {
  std::shared_ptr<device::Timeline> never;
  {
    ContextPool pool = ContextPool::open({}).value();
    if (!test::has_device(pool, "vulkan")) return;
    leave_in_flight(pool, "vulkan", never);
  }  // otherwise the time limit of the program fails
  CHECK(never->signal(1));
}

namespace {

/// How the job of an endless kernel ends.
enum class Ends { by_time, by_cancel, by_close };

/// The life of a process with an endless kernel.
void run_endless_kernel(Ends ends) {
  auto runtime = Runtime::open({.close_timeout = Duration(300ms)});
  REQUIRE(runtime);
  if (!test::has_device(*runtime, "vulkan")) return;
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "endless", .sources = {Glsl{.text = endless_glsl}}});
  REQUIRE(kernel);
  // On a busy machine a build may take longer than the time limits below. A thread that still
  // builds when the process ends uses the driver while it is destroyed.
  REQUIRE(runtime->run(Job::build(*kernel), {.time_limit = 60s, .on = "vulkan"}));
  auto array = runtime->array(std::vector<float>(1, 1.0f));
  Ticket ticket = runtime->submit((*kernel)(array).over(endless_grid),
                                  {.time_limit = ends == Ends::by_time ? Duration(1500ms) : Duration(60s),
                                   .on = "vulkan",
                                   .tag = "spin"});
  if (ends == Ends::by_time) {
    CHECK(ticket.wait().error() == Errc::timed_out);
  } else {
    CHECK(ticket.wait(1500ms).error() == Errc::timed_out);
    CHECK_FALSE(ticket.ready());
  }
  if (ends == Ends::by_cancel) {
    ticket.cancel();
    CHECK(ticket.wait(Deadline(60s)).error() == Errc::cancelled);
    CHECK(array.read(0s).error() == Errc::cancelled);
  }
  const auto closed = runtime->close(200ms);
  REQUIRE_FALSE(closed);
  CHECK(closed.error() == Errc::timed_out);
  INFO(closed.error().sentence());
  CHECK(closed.error().sentence().find("job 'endless' (tag 'spin') on ") != std::string::npos);
  CHECK(closed.error().sentence().find("vulkan:0") != std::string::npos);
  CHECK(ticket.wait().error() == (ends == Ends::by_time     ? Errc::timed_out
                                  : ends == Ends::by_cancel ? Errc::cancelled
                                                            : Errc::closed));
  CHECK_FALSE(array.read());
}  // the end of the runtime is part of it, and so is `exit`: llvmpipe's threads still run the kernel

}  // namespace

TEST_CASE("a process closes while a kernel of a job that timed out runs on", "[.abandons]") {
  run_endless_kernel(Ends::by_time);
}

TEST_CASE("a process closes while a kernel of a job that was cancelled runs on", "[.abandons]") {
  run_endless_kernel(Ends::by_cancel);
}

TEST_CASE("a process closes while an endless kernel runs", "[.abandons]") {
  run_endless_kernel(Ends::by_close);
}

TEST_CASE("closing abandons work that does not complete", "[runtime][close][no_tsan]") {
  // Each in a process of its own: threads, devices and memory that are abandoned stay until it
  // ends.
  const char* const name = GENERATE(
      "closing with a deadline abandons a host function that does not return",
      "tickets of abandoned jobs that borrow memory do not wait\\, and nested jobs are abandoned too",
      "closing names the contexts whose lanes have work in flight\\, and abandons it",
      "by default a pool waits 10 s for a GPU that does not complete its work",
      "close_timeout bounds the destruction of a runtime whose job does not end",
      "a process closes while a kernel of a job that timed out runs on",
      "a process closes while a kernel of a job that was cancelled runs on",
      "a process closes while an endless kernel runs");
  CAPTURE(name);
  CHECK(test::in_own_process(name) == test::success);
}
