// Jobs that are submitted and awaited by host functions of other jobs.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::settled;

TEST_CASE("jobs that run jobs to any depth need one worker only", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 32},
                                   .scheduler = {.concurrent_jobs = 1}})
                        .value();
  std::function<void(int)> descend;
  std::atomic<int> deepest{0};
  const auto step = Kernel<ReadWrite<float>, int>::make(
                        {.name = "step", .sources = {host([&](Range, std::span<float>, int depth) {
                                           deepest = std::max(deepest.load(), depth);
                                           if (depth < 16) descend(depth + 1);
                                         })}})
                        .value();
  descend = [&](int depth) {
    std::vector<float> x(1, 1.0f);
    if (depth % 2 == 0)
      runtime.run(step(x, depth)).value();
    else
      runtime.submit(step(x, depth)).wait().value();
  };
  descend(1);
  CHECK(deepest == 16);
  std::vector<float> x(1, 1.0f);
  auto queued = runtime.submit(step(x, 1));
  CHECK_FALSE(settled(queued));
}

TEST_CASE("every thread of a team may run jobs from its part of a host function", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 16, .cpu_threads = 4},
                                   .scheduler = {.concurrent_jobs = 1}})
                        .value();
  const auto scale = test::host_scale();
  std::atomic<int> failed{0};
  const auto outer = Kernel<ReadWrite<float>>::make({.name = "outer",
                                                     .sources = {host(
                                                         [&](Range range, std::span<float> x) {
                                                           for (const std::uint64_t i : range) {
                                                             std::vector<float> one{x[i]};
                                                             if (!runtime.run(scale(one, 2.0f))) ++failed;
                                                             if (!runtime.submit(scale(one, 2.0f)).wait())
                                                               ++failed;
                                                             x[i] = one[0];
                                                           }
                                                         },
                                                         {.tile = Extent3(1)})}})
                         .value();
  std::vector<float> x(64, 1.0f);
  CHECK(runtime.run(outer(x)));
  CHECK(failed == 0);
  CHECK(x == std::vector<float>(64, 4.0f));
}

TEST_CASE("the failure of a nested job is not that of the job around it", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  const auto throws =
      test::on_host("throws", [](Range, std::span<float>) { throw std::runtime_error("no"); });
  std::optional<Errc> inner;
  const auto outer = test::on_host("outer", [&](Range, std::span<float> x) {
    std::vector<float> y(1, 1.0f);
    inner = runtime.run(throws(y)).error().code();
    x[0] = 2.0f;
  });
  std::vector<float> x(1, 1.0f);
  CHECK(runtime.run(outer(x)));
  CHECK(inner == Errc::kernel_failed);
  CHECK(x[0] == 2.0f);
}

TEST_CASE("a job that waits with a deadline for a user of its own array times out, and then both complete",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(2);
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  std::optional<Ticket> inner;
  std::optional<Errc> waited;
  const auto outer = test::on_host("outer", [&](Range, std::span<float> values) {
    inner = runtime.submit(test::host_scale()(x, 3.0f));  // follows this job
    const auto done = inner->wait(5ms);
    if (!done) waited = done.error().code();
    values[0] = 2.0f;
  });
  auto ticket = runtime.submit(outer(x));
  CHECK_FALSE(settled(ticket));
  CHECK(waited == Errc::timed_out);
  CHECK_FALSE(settled(*inner));
  CHECK(test::contents(x) == std::vector<float>{6.0f});
}

TEST_CASE("a host function may cancel a job that it has queued", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  std::optional<Errc> inner;
  std::vector<float> y(1, 1.0f);
  const auto outer = test::on_host("outer", [&](Range, std::span<float>) {
    auto queued = runtime.submit(test::host_scale()(y, 2.0f));  // the only worker runs this function
    queued.cancel();
    inner = queued.wait().error().code();
  });
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(outer(x));
  CHECK_FALSE(settled(ticket));
  CHECK(inner == Errc::cancelled);
  CHECK(y[0] == 1.0f);
}

TEST_CASE("nested jobs are counted as running, and the counts agree inside them", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  SchedulerMetrics inside;
  const auto inner =
      test::on_host("inner", [&](Range, std::span<float>) { inside = runtime.metrics().jobs; });
  const auto outer = test::on_host("outer", [&](Range, std::span<float> x) { (void)runtime.run(inner(x)); });
  std::vector<float> x(1, 1.0f);
  CHECK(runtime.run(outer(x)));
  CHECK(inside.running == 2);
  CHECK(inside.queued == 0);
  CHECK(inside.submitted == 2);
  test::check_counts(inside);
  CHECK(runtime.metrics().jobs.running == 0);
}

TEST_CASE("a job that is cancelled while a nested job runs settles after it, as cancelled", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  test::Latch latch;
  std::optional<bool> inner;
  const auto outer = test::on_host("outer", [&](Range, std::span<float>) {
    std::vector<float> y(1, 1.0f);
    inner = runtime.run(latch.kernel(y)).has_value();
  });
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(outer(x));
  latch.await();
  ticket.cancel();
  CHECK_FALSE(ticket.ready());
  latch.open();
  CHECK(settled(ticket) == Errc::cancelled);
  CHECK(inner == true);  // the nested job has a ticket of its own
}
