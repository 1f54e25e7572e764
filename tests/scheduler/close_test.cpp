// Closing a scheduler while jobs wait, run and are submitted.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Busy;
using test::settled;

TEST_CASE("closing settles queued jobs, and jobs that follow the running one when it has ended",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  test::Latch latch;
  auto x = runtime.array(std::vector<float>(1, 1.0f));
  std::vector<float> y(1, 1.0f);
  auto running = runtime.submit(latch.kernel(x));
  latch.await();
  auto follows = runtime.submit(test::host_scale()(x, 2.0f));
  auto queued = runtime.submit(test::host_scale()(y, 2.0f));
  std::thread closing([&] { runtime.close(); });
  CHECK(settled(queued) == Errc::closed);
  CHECK_FALSE(running.ready());
  latch.open();
  closing.join();
  CHECK(running.wait());
  CHECK(follows.ready());
  CHECK(follows.wait().error() == Errc::closed);
  CHECK(y[0] == 1.0f);
  test::check_counts(runtime.metrics().jobs);
}

TEST_CASE("a host function may close the scheduler of its own job, which completes", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  std::vector<float> x(1, 1.0f), y(1, 1.0f), z(1, 1.0f);
  std::optional<Errc> nested;
  std::atomic<bool> go{false};
  const auto closes = test::on_host("closes", [&](Range, std::span<float> values) {
    while (!go) std::this_thread::yield();
    runtime.close();
    nested = runtime.run(test::host_scale()(z, 2.0f)).error().code();
    values[0] = 2.0f;
  });
  auto ticket = runtime.submit(closes(x));
  auto queued = runtime.submit(test::host_scale()(y, 2.0f));
  go = true;
  CHECK_FALSE(settled(ticket));
  CHECK(x[0] == 2.0f);
  CHECK(nested == Errc::closed);
  CHECK(settled(queued) == Errc::closed);
}

TEST_CASE("threads that close at the same time all return after the running job has ended", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  test::Latch latch;
  std::vector<float> x(1, 1.0f);
  std::atomic<int> early{0};
  std::atomic<bool> ended{false};
  const auto ends = test::on_host("ends", [&](Range, std::span<float>) {
    latch.pass();
    ended = true;
  });
  auto ticket = runtime.submit(ends(x));
  latch.await();
  std::deque<test::Thread> closing;
  for (int t = 0; t < 4; ++t)
    closing.emplace_back([&] {
      runtime.close();
      if (!ended) ++early;
    });
  for (const test::Thread& thread : closing) thread.await_parked();
  latch.open();
  for (test::Thread& thread : closing) thread.join();
  CHECK(early == 0);
  CHECK(ticket.wait());
}

TEST_CASE("closing with a deadline of zero closes an idle scheduler, also twice", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  REQUIRE(runtime.run(test::host_scale()(x, 2.0f)));
  auto& scheduler = runtime.scheduler();
  CHECK(scheduler.close(0ms));
  CHECK(scheduler.close(0ms));
  scheduler.close();
  CHECK(runtime.run(test::host_scale()(x, 2.0f)).error() == Errc::closed);
}

TEST_CASE("a closed scheduler still has its counts, and its tickets their results", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(1, 1.0f);
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  REQUIRE(ticket.wait());
  runtime.close();
  CHECK(ticket.wait()->device().id == "cpu:0");
  CHECK(ticket.wait()->reason() == "'cpu:0' is the only device.");
  CHECK(ticket.explain().candidates.size() == 1);
  CHECK(runtime.metrics().jobs.completed == 1);
}

TEST_CASE("jobs that continuations submit while the scheduler closes settle as closed", "[scheduler]") {
  Busy busy;
  auto x = busy.runtime.array(std::vector<float>(1, 1.0f));
  std::vector<float> y(1, 1.0f);
  auto queued = busy.runtime.submit(test::host_scale()(y, 2.0f));
  std::promise<Errc> second;
  queued.then([&](const Result<Outcome>& first) {
    auto next = busy.runtime.submit(test::host_scale()(x, 2.0f));
    const auto done = next.wait(0ms);
    second.set_value(first || done ? Errc::internal : done.error().code());
  });
  std::thread closing([&] { busy.runtime.close(); });
  CHECK(second.get_future().get() == Errc::closed);
  busy.latch.open();
  closing.join();
}

TEST_CASE("every job settles once while threads submit and the scheduler closes", "[scheduler]") {
  for (int round = 0; round < test::rounds(60); ++round) {
    Runtime runtime = test::cpu_runtime(2);
    auto array = runtime.array(std::vector<float>(1, 1.0f));
    constexpr int threads = 4, jobs = 50;
    std::atomic<int> settled{0}, wrong{0};
    std::vector<std::thread> submitting;
    for (int t = 0; t < threads; ++t)
      submitting.emplace_back([&, t] {
        const auto scale = test::host_scale();
        std::vector<float> x(1, 1.0f);
        for (int i = 0; i < jobs; ++i) {
          auto ticket =
              (i + t) % 2 == 0 ? runtime.submit(scale(x, 1.0f)) : runtime.submit(scale(array, 1.0f));
          ticket.then([&](const Result<Outcome>& r) {
            ++settled;
            if (!r && r.error() != Errc::closed && r.error() != Errc::cancelled) ++wrong;
          });
          if (i % 3 == 0) (void)ticket.wait();
        }
      });
    while (settled < round) std::this_thread::yield();
    runtime.close();
    for (std::thread& thread : submitting) thread.join();
    runtime.close();
    const SchedulerMetrics metrics = runtime.metrics().jobs;
    REQUIRE(settled == threads * jobs);
    REQUIRE(wrong == 0);
    REQUIRE(metrics.submitted == threads * jobs);
    test::check_counts(metrics);
  }
}

TEST_CASE("copies share one scheduler, and the last one closes it", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  std::vector<float> x(1, 1.0f);
  std::optional<Scheduler> first = test::scheduler_of({device});
  std::optional<Scheduler> second = first;
  CHECK(first->run(test::host_scale()(x, 2.0f)));
  first.reset();
  CHECK(second->metrics().completed == 1);
  CHECK(second->run(test::host_scale()(x, 2.0f)));
  second.reset();
  CHECK(x[0] == 4.0f);
  CHECK(device.use_count() == 1);
}

TEST_CASE("a scheduler outlives the pool and cache handles that it was opened with", "[scheduler]") {
  const auto device = test::scripted("cuda:0");
  std::optional<Scheduler> scheduler;
  {
    const ContextPool pool = test::pool_of({device});
    const ShaderCache cache = ShaderCache::open().value();
    scheduler = Scheduler::open(pool, cache).value();
  }
  std::vector<float> x(1, 1.0f);
  CHECK(scheduler->run(test::host_scale()(x, 2.0f)));
  CHECK(x[0] == 2.0f);
}
