// Jobs in flight on a device hold no thread, and jobs that wait for jobs make room for them.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/worker.hpp"
#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

TEST_CASE("ten thousand jobs in flight and queued on a device hold no thread", "[scheduler]") {
  constexpr int jobs = 10'000;
  const Scripted device = scripted("cuda:0");
  device->hold();
  const int threads = base::Worker::alive();
  Scheduler scheduler = test::scheduler_of({device}, {}, {.lanes_per_device = 3});
  std::vector<float> x(jobs, 1.0f);
  const auto scale = test::host_scale();
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < jobs; ++i)
    tickets.push_back(scheduler.submit(scale(std::span<float>(x).subspan(i, 1), 2.0f)));
  await([&] { return device->held() == 3; });
  CHECK(scheduler.metrics().running == 3);
  CHECK(scheduler.metrics().queued == jobs - 3);
  CHECK(base::Worker::alive() - threads <= 1 + 4);
  device->release();
  for (Ticket& ticket : tickets) REQUIRE(ticket.wait(Deadline(60s)));
  CHECK(std::all_of(x.begin(), x.end(), [](float v) { return v == 2.0f; }));
  CHECK(base::Worker::alive() - threads <= 1 + 4);
}

TEST_CASE("jobs on every device of this machine need few threads", "[scheduler]") {
  constexpr std::size_t jobs = 10'000;
  Runtime runtime = Runtime::open().value();
  const auto scale = test::scale();
  for (const Device& device : runtime.devices()) {
    if (!test::runs_glsl_or_host(device) || device.info().backend == "cpu") continue;
    INFO(device.id());
    std::vector<float> warm(1, 1.0f);
    REQUIRE(runtime.run(scale(warm, 2.0f), {.on = device.id()}));
    const int threads = base::Worker::alive();
    std::vector<Array<float>> arrays;
    for (int i = 0; i < 8; ++i) arrays.push_back(runtime.array<float>(std::vector<float>(64, 1.0f)));
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < jobs; ++i)
      tickets.push_back(runtime.submit(scale(arrays[i % 8], i % 16 < 8 ? 2.0f : 0.5f), {.on = device.id()}));
    int most = 0;
    for (std::size_t i = 0; i < jobs; i += 500) {
      most = std::max(most, base::Worker::alive());
      REQUIRE(tickets[i].wait(Deadline(60s)));
    }
    for (Ticket& ticket : tickets) REQUIRE(ticket.wait(Deadline(60s)));
    CHECK(most - threads <= static_cast<int>(runtime.devices().size()) + 4);
    for (const Array<float>& array : arrays) {
      const auto view = array.read();
      REQUIRE(view);
      for (float v : *view) CHECK(v == 1.0f);
    }
  }
}

TEST_CASE("concurrent_jobs does not limit the jobs in flight on a device", "[scheduler]") {
  const Scripted gpu = scripted("cuda:0");
  gpu->hold();
  Scheduler scheduler = test::scheduler_of({gpu}, {.concurrent_jobs = 1});
  std::vector<float> x(2, 1.0f);
  const auto scale = test::host_scale();
  auto first = scheduler.submit(scale(std::span<float>(x).first(1), 2.0f));
  await([&] { return gpu->held() == 1; });
  auto second = scheduler.submit(scale(std::span<float>(x).last(1), 3.0f));
  await([&] { return gpu->held() == 2; });
  CHECK_FALSE(first.ready());
  gpu->release();
  CHECK(first.wait());
  CHECK(second.wait());
  CHECK(x == std::vector<float>{2.0f, 3.0f});
}

TEST_CASE("a job in flight past its time limit settles at the limit, and its lane is not reused",
          "[scheduler]") {
  const Scripted device = scripted("cuda:0");
  device->hold();
  ManualClock clock;
  Scheduler scheduler = test::scheduler_of({device}, {.clock = &clock}, {.lanes_per_device = 1});
  std::vector<float> x(1, 1.0f);
  auto ticket = scheduler.submit(test::host_scale()(x, 2.0f), {.time_limit = 100s});
  await([&] { return device->held() == 1; });
  clock.advance(100s);
  CHECK(test::settled(ticket) == Errc::timed_out);
  CHECK(x[0] == 1.0f);
  CHECK(ticket.wait().error().sentence().find("time limit (100 s)") != std::string::npos);
  device->release();
  CHECK(device->lanes_alive() <= 1);
  CHECK(scheduler.run(test::host_scale()(x, 2.0f)));
  CHECK(device->count(Step::create_lane) == 2);
  CHECK(x[0] == 2.0f);
}

TEST_CASE("jobs in flight on a device that is lost run on the next one, each once", "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  for (const Scripted& device : {first, second}) device->hold();
  Scheduler scheduler = test::scheduler_of({first, second}, {}, {.lanes_per_device = 4});
  const auto scale = [](std::size_t i) {  // of another kernel each: no time is known
    return Kernel<ReadWrite<float>, float>::make(
               {.name = "scale " + std::to_string(i),
                .sources = {host([](Range range, std::span<float> x, float factor) {
                  for (const std::uint64_t at : range) x[at] *= factor;
                })}})
        .value();
  };
  std::vector<float> busy(4, 1.0f);
  std::vector<Ticket> blockers;  // of the second device: otherwise jobs that wait for the first move there
  for (std::size_t i = 0; i < busy.size(); ++i)
    blockers.push_back(
        scheduler.submit(scale(i)(std::span<float>(busy).subspan(i, 1), 2.0f), {.on = "vulkan:0"}));
  await([&] { return second->held() == busy.size(); });
  constexpr std::size_t jobs = 50;
  std::vector<float> x(jobs, 1.0f);
  std::vector<Ticket> tickets;
  std::atomic<int> settled{0};
  for (std::size_t i = 0; i < jobs; ++i) {
    JobOptions options;
    if (i + 1 == jobs) options.time_limit = 60s;  // it is no trial on the second device
    tickets.push_back(scheduler.submit(scale(4 + i)(std::span<float>(x).subspan(i, 1), 2.0f), options));
    tickets.back().then([&](const Result<Outcome>&) { ++settled; });
  }
  await([&] { return first->held() == 4; });
  first->lose();
  second->release();
  for (Ticket& ticket : tickets) {
    const auto outcome = ticket.wait(Deadline(60s));
    REQUIRE(outcome);
    CHECK(outcome->device().id == "vulkan:0");
  }
  // A job that waited for a lane of the lost device was not tried there.
  const Explanation last = tickets.back().explain();
  REQUIRE(last.candidates.size() == 2);
  CHECK(last.candidates[1].device == "cuda:0");
  CHECK(last.candidates[1].verdict == Candidate::Verdict::refused);
  CHECK(last.candidates[1].code == RefusalCode::device_lost);
  await([&] { return settled >= static_cast<int>(jobs); });
  scheduler.close();
  CHECK(settled == static_cast<int>(jobs));
  CHECK(std::all_of(x.begin(), x.end(), [](float v) { return v == 2.0f; }));
  CHECK(scheduler.metrics().fallbacks == 4);
  CHECK(first->buffers_alive() == 0);
  CHECK(second->buffers_alive() == 0);
}

TEST_CASE("submissions of one job to two devices complete after the job has timed out and its ticket is gone",
          "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  for (const Scripted& device : {first, second}) device->hold();
  first->set_script([](Step step) -> std::optional<Error> {
    if (step == Step::wait) return Error(Errc::io, "The script fails this step.");
    return std::nullopt;
  });
  ManualClock clock;
  Scheduler scheduler = test::scheduler_of({first, second}, {.clock = &clock});
  {
    std::vector<float> x(1, 1.0f);
    auto ticket = scheduler.submit(test::host_scale()(x, 2.0f), {.time_limit = 100s});
    await([&] { return first->held() == 1; });
    clock.advance(100s);  // a worker takes the job back, finds that its device has failed, and tries the next
    CHECK(test::settled(ticket) == Errc::timed_out);
    CHECK(x[0] == 1.0f);
  }
  CHECK(second->held() == 1);
  first->release();
  second->release();
  CHECK(scheduler.quiesce(60s));
}

TEST_CASE("closing waits for jobs in flight and settles queued ones", "[scheduler]") {
  const Scripted device = scripted("cuda:0");
  device->hold();
  const int threads = base::Worker::alive();
  {
    Scheduler scheduler = test::scheduler_of({device}, {}, {.lanes_per_device = 2});
    std::vector<float> x(5, 1.0f);
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < 5; ++i)
      tickets.push_back(scheduler.submit(test::host_scale()(std::span<float>(x).subspan(i, 1), 2.0f)));
    await([&] { return device->held() == 2; });
    std::thread closing([&] { scheduler.close(); });
    for (std::size_t i = 2; i < 5; ++i) CHECK(tickets[i].wait(Deadline(60s)).error() == Errc::closed);
    CHECK_FALSE(tickets[0].ready());
    device->release();
    closing.join();
    CHECK(tickets[0].wait());
    CHECK(tickets[1].wait());
    CHECK(x == std::vector<float>{2.0f, 2.0f, 1.0f, 1.0f, 1.0f});
  }
  CHECK(base::Worker::alive() == threads);
}

// Not with TSan: the abandoned scheduler keeps its threads.
TEST_CASE("closing with a deadline abandons jobs in flight", "[scheduler][no_tsan]") {
  const Scripted device = scripted("cuda:0");
  device->hold();
  Scheduler scheduler = test::scheduler_of({device}, {}, {.lanes_per_device = 2});
  std::vector<float> x(2, 1.0f);
  auto first = scheduler.submit(test::host_scale()(std::span<float>(x).first(1), 2.0f));
  auto second = scheduler.submit(test::host_scale()(std::span<float>(x).last(1), 2.0f));
  await([&] { return device->held() == 2; });
  const auto closed = scheduler.close(Deadline(50ms));
  REQUIRE_FALSE(closed);
  CHECK(closed.error() == Errc::timed_out);
  CHECK(closed.error().sentence().find("'host_scale' on 'cuda:0'") != std::string::npos);
  CHECK(first.wait().error() == Errc::closed);
  CHECK(second.wait().error() == Errc::closed);
  device->release();
  CHECK(x == std::vector<float>{1.0f, 1.0f});
}

TEST_CASE("host functions that wait for jobs, eight deep, do not deadlock with one job at a time",
          "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}, .lanes_per_device = 16},
                                   .scheduler = {.concurrent_jobs = 1}})
                        .value();
  // Each level waits for a job that follows another one by an array: the waiting thread cannot run
  // that one itself.
  std::function<void(int)> descend = [&](int depth) {
    if (depth == 0) return;
    Array<float> array = runtime.array<float>(std::vector<float>(1, 1.0f));
    const auto next = test::on_host("next", [&, depth](Range, std::span<float> x) {
      x[0] += 1.0f;
      descend(depth - 1);
    });
    auto before = runtime.submit(next(array));
    auto after = runtime.submit(test::host_scale()(array, 2.0f));
    after.wait().value();
    before.wait().value();
    const auto view = array.read();
    if ((*view)[0] != 4.0f) throw std::runtime_error("wrong result");
  };
  std::vector<float> x(1, 1.0f);
  const auto outer = test::on_host("outer", [&](Range, std::span<float> v) {
    descend(8);
    v[0] = 7.0f;
  });
  auto ticket = runtime.submit(outer(x));
  const auto result = ticket.wait(Deadline(120s));
  INFO((result ? std::string() : result.error().describe()));
  CHECK(result);
  CHECK(x[0] == 7.0f);
}

TEST_CASE("readers of an array on one device follow the copy that the first one submitted", "[scheduler]") {
  const Scripted device = scripted("cuda:0");
  ContextPool pool = test::pool_of({device}, {.lanes_per_device = 2});
  Scheduler scheduler = scheduler::open(pool, std::make_shared<test::Builder>(Clock::steady()),
                                        {.preferences = {{workload_types::custom, Bytes{0}, {"cuda"}}}})
                            .value();
  const std::vector<float> values{3.0f, 5.0f};
  const auto array = test::array_in(pool, values);
  const auto copy = test::copy();
  device->hold();
  std::vector<std::vector<float>> out(2, std::vector<float>(2));
  std::vector<Ticket> tickets;
  for (auto& y : out) {
    tickets.push_back(scheduler.submit(copy(array, y)));
  }
  // Both jobs are in flight, with one copy of the array: the second one did not wait for the first.
  await([&] { return scheduler.metrics().running == 2 && device->held() == 3; });
  CHECK_FALSE(tickets[0].ready());
  device->release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait(Deadline(60s)));
  for (const auto& y : out) CHECK(y == values);
}
