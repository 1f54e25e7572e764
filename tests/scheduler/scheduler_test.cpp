#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/worker.hpp"
#include "latch.hpp"
#include "rig.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::Latch;

namespace {

bool has(const Runtime& runtime, std::string_view backend) {
  return std::ranges::any_of(runtime.devices(),
                             [&](const Device& device) { return device.info().backend == backend; });
}

}  // namespace

TEST_CASE("one process sends one workload type to one backend and another to another", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu", "null"}},
                                   .scheduler = {.placement = PlacementMode::table,
                                                 .preferences = {{workload_types::vector, 0_B, {"cpu"}},
                                                                 {workload_types::matrix, 0_B, {"null"}}}}})
                        .value();
  std::vector<float> x(100, 1.5f);
  const auto scale = test::scale();
  auto vector = runtime.submit(Job(scale(x, 2.0f), workload_types::vector)).wait();
  auto matrix = runtime.submit(Job(scale(x, 2.0f), workload_types::matrix)).wait();
  REQUIRE(vector);
  REQUIRE(matrix);
  CHECK(vector->backend() == "cpu");
  CHECK(matrix->backend() == "null");
  CHECK(vector->reason() == "'cpu' comes first for vector work of 400 bytes.");
  CHECK(x[0] == 3.0f);
  auto overridden =
      runtime.submit(Job(scale(x, 2.0f), workload_types::matrix), {.type = workload_types::vector}).wait();
  CHECK(overridden->backend() == "cpu");
}

TEST_CASE("the size of the operands chooses the row", "[scheduler]") {
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu", "null"}},
                     .scheduler = {.preferences = {{workload_types::vector, 0_B, {"cpu"}},
                                                   {workload_types::vector, 4000_B, {"null"}}}}})
          .value();
  std::vector<float> small(999, 1.0f), large(1000, 1.0f);
  CHECK(runtime.run(Job(test::scale()(small, 2.0f), workload_types::vector))->backend() == "cpu");
  CHECK(runtime.run(Job(test::scale()(large, 2.0f), workload_types::vector))->backend() == "null");
}

TEST_CASE("a job without a source for the first device runs on the next and explains it", "[scheduler]") {
  Runtime runtime =
      Runtime::open({.scheduler = {.preferences = {{workload_types::custom, 0_B, {"vulkan", "cpu"}}}}})
          .value();
  if (!test::has_device(runtime, "vulkan")) return;
  std::vector<float> x(10, 1.0f);
  auto ticket = runtime.submit(test::host_scale()(x, 2.0f));
  auto done = ticket.wait();
  REQUIRE(done);
  CHECK(done->backend() == "cpu");
  const std::string text = ticket.explain().text();
  CHECK(text.find("ran on cpu:0 (") == 0);
  CHECK(text.find("vulkan:0  refused: ") != std::string::npos);
  CHECK(text.find("host_scale") != std::string::npos);
}

TEST_CASE("a job over the budget of the only device that it requests fails and changes nothing",
          "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.lane_memory = 1_MiB}}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  std::vector<float> x(1'000'000, 1.0f);
  CHECK(runtime.run(test::scale()(x, 2.0f), {.on = "vulkan"}).error() == Errc::over_budget);
  CHECK(x == std::vector<float>(1'000'000, 1.0f));
}

TEST_CASE("a device that does not exist is an error that lists the devices", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(4, 1.0f);
  auto nowhere = runtime.submit(test::scale()(x, 2.0f), {.on = "abacus"}).wait();
  CHECK(nowhere.error() == Errc::not_found);
  CHECK(nowhere.error().sentence() ==
        "There is no device or backend 'abacus' (devices: 'cpu:0'; backends: 'cpu').");
  Runtime with_missing = Runtime::open({.pool = {.backends = {"cuda", "cpu"}}}).value();
  if (has(with_missing, "cuda")) return test::skip("there is a CUDA device");
  CHECK(with_missing.submit(test::scale()(x, 2.0f), {.on = "abacus"}).wait().error().sentence() ==
        "There is no device or backend 'abacus' (devices: 'cpu:0'; backends: 'cpu').");
  auto missing = with_missing.submit(test::scale()(x, 2.0f), {.on = "cuda"}).wait();
  CHECK(missing.error() == Errc::unavailable);
  CHECK(missing.error().sentence().find("'cuda' cannot be used: ") == 0);
}

TEST_CASE("jobs start by priority, then in order of submission", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  Latch latch;
  std::vector<float> x(1, 1.0f);
  auto blocker = runtime.submit(latch.kernel(x));
  latch.await();
  std::mutex mutex;
  std::string order;
  const auto note = [&](char c) {
    return test::on_host("note", [&mutex, &order, c](Range, std::span<float>) {
      const std::lock_guard lock(mutex);
      order += c;
    });
  };
  std::vector<Ticket> tickets;
  tickets.push_back(runtime.submit(note('l')(x), {.priority = Priority::low}));
  tickets.push_back(runtime.submit(note('1')(x)));
  tickets.push_back(runtime.submit(note('2')(x)));
  tickets.push_back(runtime.submit(note('h')(x), {.priority = Priority::high}));
  CHECK(runtime.metrics().jobs.queued == 4);
  CHECK(runtime.metrics().jobs.running == 1);
  latch.open();
  for (Ticket& ticket : tickets) CHECK(ticket.wait(1min));
  CHECK(blocker.wait());
  CHECK(order == "h12l");
}

TEST_CASE("a job that has not started by its start_by times out, and the others continue", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  Latch latch;
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  auto blocker = runtime.submit(latch.kernel(x));
  latch.await();
  auto late = runtime.submit(test::host_scale()(y, 2.0f), {.start_by = 10ms});
  auto patient = runtime.submit(test::host_scale()(y, 2.0f));
  CHECK(late.wait().error() == Errc::timed_out);
  latch.open();
  CHECK(patient.wait());
  CHECK(blocker.wait());
  CHECK(y[0] == 2.0f);
}

TEST_CASE("a host function over its time limit sees its StopToken, and the job times out", "[scheduler]") {
  ManualClock clock;
  Runtime runtime = test::cpu_runtime(4, &clock);
  const auto endless = Kernel<ReadWrite<float>>::make(
      {.name = "endless", .sources = {host([&](Range, std::span<float>, StopToken stop) {
                            if (stop.stop_requested()) return;
                            clock.advance(20ms);
                            while (!stop.stop_requested()) std::this_thread::yield();
                          })}});
  std::vector<float> x(1, 1.0f);
  auto limited = runtime.submit((*endless)(x), {.time_limit = 20ms}).wait();
  REQUIRE_FALSE(limited);
  CHECK(limited.error() == Errc::timed_out);
  CHECK(limited.error().sentence().find("within its time limit (0.02 s)") != std::string::npos);
}

TEST_CASE("cancelling settles a queued job at once and a running one when its function returns",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  test::StopPoint begun;
  begun.open();
  const auto endless = Kernel<ReadWrite<float>>::make(
      {.name = "endless", .sources = {host([&](Range, std::span<float>, StopToken stop) {
                            begun.pass();
                            while (!stop.stop_requested()) std::this_thread::yield();
                          })}});
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  auto running = runtime.submit((*endless)(x));
  begun.await();
  auto queued = runtime.submit(test::host_scale()(y, 2.0f));
  queued.cancel();
  CHECK(queued.ready());
  CHECK(queued.wait().error() == Errc::cancelled);
  CHECK(y[0] == 1.0f);
  running.cancel();
  CHECK(running.wait().error() == Errc::cancelled);
  CHECK(runtime.metrics().jobs.cancelled == 2);
}

TEST_CASE("the destructor of a ticket cancels a queued job and waits for a running one", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(1);
  Latch latch;
  std::vector<float> x(1, 1.0f);
  auto blocker = std::make_optional(runtime.submit(latch.kernel(x)));
  latch.await();
  {
    std::vector<float> short_lived(100, 1.0f);
    auto queued = runtime.submit(test::host_scale()(short_lived, 2.0f));
  }
  CHECK(runtime.metrics().jobs.cancelled == 1);
  std::atomic<bool> ended{false};
  test::Thread dropper([&] {
    blocker.reset();
    ended = true;
  });
  dropper.await_parked();
  CHECK_FALSE(ended);
  latch.open();
  dropper.join();
}

TEST_CASE("then calls once with the result, also after the job has settled, and its function may throw",
          "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(10, 1.0f);
  Latch latch;
  std::atomic<int> called{0};
  auto ticket = runtime.submit(latch.kernel(x));
  ticket.then([&](const Result<Outcome>& r) {
    called += r ? 1 : 100;
    throw std::runtime_error("dropped");
  });
  CHECK(called == 0);
  latch.open();
  CHECK(ticket.wait());
  REQUIRE(runtime.scheduler().quiesce());
  ticket.then([&](const Result<Outcome>& r) { called += r->backend() == "cpu" ? 10 : 100; });
  CHECK(called == 11);
}

TEST_CASE("an exception of a host function fails its job and no other", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  std::vector<float> x(10, 1.0f), y(10, 1.0f);
  const auto throws =
      test::on_host("throws", [](Range, std::span<float>) { throw std::runtime_error("out of ink"); });
  const auto odd = test::on_host("odd", [](Range, std::span<float>) { throw 7; });
  auto failed = runtime.submit(throws(x)).wait();
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == Errc::kernel_failed);
  CHECK(failed.error().sentence().find("out of ink") != std::string::npos);
  CHECK(runtime.submit(odd(x)).wait().error() == Errc::kernel_failed);
  CHECK(runtime.submit(test::host_scale()(y, 2.0f)).wait());
  CHECK(y[9] == 2.0f);
}

TEST_CASE("jobs that wait for jobs do not deadlock", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 8},
                                   .scheduler = {.concurrent_jobs = 2}})
                        .value();
  const auto inner = test::host_scale();
  const auto outer = test::on_host("outer", [&](Range range, std::span<float> x) {
    for (std::uint64_t i : range) {
      std::vector<float> one{x[i]};
      runtime.run(inner(one, 2.0f)).value();
      runtime.submit(inner(one, 3.0f)).wait().value();
      x[i] = one[0];
    }
  });
  std::vector<std::vector<float>> data(6, std::vector<float>(3, 1.0f));
  std::vector<Ticket> tickets;
  for (auto& x : data) tickets.push_back(runtime.submit(outer(x)));
  for (Ticket& ticket : tickets) {
    const auto result = ticket.wait();
    INFO((result ? std::string("done") : result.error().describe()));
    CHECK(result);
  }
  for (const auto& x : data) CHECK(x == std::vector<float>(3, 6.0f));
}

TEST_CASE("a sequence runs its steps in order on one device, with memory between them", "[scheduler]") {
  Runtime runtime = Runtime::open().value();
  const auto scale = test::scale();
  const auto copy = test::copy();
  for (const Device& device : runtime.devices()) {
    if (!test::runs_glsl_or_host(device)) continue;
    std::vector<float> x(1000), y(1000, -1.0f);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) + 0.5f;
    Scratch<float> between(1000);
    auto done = runtime
                    .submit(Job::sequence("chain", workload_types::vector, copy(x, between),
                                          {scale(between, 2.0f), scale(between, -3.0f), copy(between, y)}),
                            {.on = device.id()})
                    .wait();
    REQUIRE(done);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == x[i] * -6.0f);
  }
}

TEST_CASE("operands that overlap share their memory on every device", "[scheduler]") {
  Runtime runtime = Runtime::open().value();
  const auto scale = test::scale();
  for (const Device& device : runtime.devices()) {
    if (!test::runs_glsl_or_host(device)) continue;
    std::vector<float> x(512);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) + 1;
    const std::span<float> all(x), half(x.data() + 256, 256);
    REQUIRE(
        runtime
            .submit(Job::sequence("overlap", workload_types::vector, scale(all, 2.0f), {scale(half, 5.0f)}),
                    {.on = device.id()})
            .wait());
    CHECK(x[0] == 2.0f);
    CHECK(x[255] == 512.0f);
    CHECK(x[256] == 2570.0f);
    CHECK(x[511] == 5120.0f);
  }
}

TEST_CASE("a job runs on the device of its buffer; a buffer of another runtime is refused", "[scheduler]") {
  Runtime runtime = Runtime::open().value();
  const Device device = runtime.devices().back();
  auto lease = runtime.pool().lease({.on = device.id()}).value();
  std::vector<float> x(100, 1.5f), out(100);
  auto buffer = lease.buffer<float>(100).value();
  lease.upload(x, buffer);
  REQUIRE(lease.wait());
  auto done = runtime.submit(test::scale()(buffer, 2.0f)).wait();
  REQUIRE(done);
  CHECK(done->device().id == device.id());
  lease.download(buffer, out);
  REQUIRE(lease.wait());
  CHECK(out == std::vector<float>(100, 3.0f));

  Runtime other = test::cpu_runtime();
  auto refused = other.submit(test::scale()(buffer, 2.0f)).wait();
  CHECK(refused.error() == Errc::invalid_argument);
  CHECK(refused.error().sentence().find("is a buffer of device '") != std::string::npos);
}

TEST_CASE("a runtime closes while jobs are in flight, and they settle", "[scheduler]") {
  std::vector<float> x(4, 1.0f);
  std::vector<Ticket> tickets;
  Latch latch;
  {
    Runtime runtime = test::cpu_runtime(1);
    for (int i = 0; i < 20; ++i) tickets.push_back(runtime.submit(latch.kernel(x)));
    latch.await();
    latch.open();
  }
  int done = 0, closed = 0;
  for (Ticket& ticket : tickets) {
    const auto result = ticket.wait();
    done += result ? 1 : 0;
    closed += !result && result.error() == Errc::closed;
  }
  CHECK(done >= 1);
  CHECK(done + closed == 20);
}

TEST_CASE("a closed runtime refuses jobs and leases", "[scheduler]") {
  Runtime runtime = test::cpu_runtime();
  runtime.close();
  runtime.close();
  std::vector<float> x(4, 1.0f);
  CHECK(runtime.submit(test::scale()(x, 2.0f)).wait().error() == Errc::closed);
  CHECK(runtime.run(test::scale()(x, 2.0f)).error() == Errc::closed);
  CHECK(runtime.pool().lease().error() == Errc::closed);
}

TEST_CASE("eight threads submit and every job settles exactly once", "[scheduler]") {
  Runtime runtime = test::cpu_runtime(3);
  const auto scale = test::host_scale();
  std::atomic<int> settled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::vector<float>> data(100, std::vector<float>(17, 1.0f));
      std::vector<Ticket> tickets;
      for (auto& x : data) {
        tickets.push_back(runtime.submit(scale(x, 2.0f), {.priority = static_cast<Priority>(t % 3)}));
        tickets.back().then([&](const Result<Outcome>&) { ++settled; });
      }
      for (std::size_t i = 0; i < tickets.size(); ++i)
        if (i % 7 == 3) tickets[i].cancel();
      for (Ticket& ticket : tickets) (void)ticket.wait();
    });
  }
  for (auto& thread : threads) thread.join();
  REQUIRE(runtime.scheduler().quiesce());
  const SchedulerMetrics jobs = runtime.metrics().jobs;
  CHECK(settled == 800);
  CHECK(jobs.submitted == 800);
  CHECK(jobs.completed + jobs.cancelled == 800);
  CHECK(jobs.queued == 0);
  CHECK(jobs.running == 0);
}

TEST_CASE("several runtimes coexist, and all their threads are joined", "[scheduler]") {
  const int threads =
      base::Worker::alive();  // tests before it may have abandoned some, which end at any time
  {
    std::vector<Runtime> runtimes;
    for (int i = 0; i < 3; ++i) runtimes.push_back(test::cpu_runtime());
    std::vector<float> x(100'000, 1.0f);
    for (Runtime& runtime : runtimes) CHECK(runtime.submit(test::host_scale()(x, 2.0f)).wait());
    CHECK(x[99'999] == 8.0f);
  }
  CHECK(base::Worker::alive() <= threads);
}

TEST_CASE("scheduler options out of range are refused", "[scheduler]") {
  CHECK(Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 0}}).error() ==
        Errc::invalid_argument);
  CHECK(Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.job_time_limit = Duration::zero()}})
            .error() == Errc::invalid_argument);
  auto unknown = Runtime::open({.pool = {.backends = {"cpu"}},
                                .scheduler = {.preferences = {{workload_types::image, 0_B, {"opengl"}}}}});
  CHECK(unknown.error() == Errc::invalid_argument);
  CHECK(unknown.error().sentence() ==
        "The preference for image work names a backend ('opengl') that does not exist.");
}
