// Devices share the jobs that each of them could run.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::check_counts;
using test::Scripted;

namespace {

/// Scripted GPUs with one lane each, on a clock that the test advances.
struct Gpus {
  /// One GPU for each name.
  explicit Gpus(const std::vector<std::string>& names, SchedulerOptions options = {},
                std::shared_ptr<device::ExecutableProvider> provider = nullptr) {
    for (std::size_t d = 0; d < names.size(); ++d) {
      devices.push_back(std::make_shared<test::ScriptedDevice>(
          "cuda:" + std::to_string(d), AdapterType::discrete, Features{}, std::uint8_t{0}, names[d]));
      devices.back()->hold();
    }
    if (options.batch_limit == SchedulerOptions().batch_limit) options.batch_limit = 1;
    options.clock = &clock;
    pool.emplace(test::pool_of(devices, {.lanes_per_device = 1, .clock = &clock}));
    scheduler.emplace(test::scheduler_on(*pool, devices, std::move(options), std::move(provider)));
  }
  void submit(int jobs, const JobOptions& options = {}) {
    for (int i = 0; i < jobs; ++i) {
      values.push_back(std::make_unique<std::vector<float>>(1, 1.0f));
      tickets.push_back(scheduler->submit(kernel(*values.back(), 2.0f), options));
    }
  }
  std::size_t in_flight() const {
    std::size_t sum = 0;
    for (const Scripted& device : devices) sum += device->held();
    return sum;
  }
  /// Waits until `count` jobs have settled.
  void await_settled(std::uint64_t count) const {
    await([&] {
      const SchedulerMetrics now = scheduler->metrics();
      return now.completed + now.failed + now.cancelled + now.timed_out >= count;
    });
  }
  /// Completes all jobs. The job in flight on device `d` takes `steps[d]` steps of 1 ms. Returns
  /// the steps until the last one has completed. `is_full` tells whether the devices have taken what
  /// they take at a step.
  template <class IsFull>
  std::uint32_t run(std::vector<std::uint32_t> steps, IsFull is_full) {
    std::vector<std::uint32_t> left = steps;
    std::uint64_t settled = 0;
    std::uint32_t now = 0;
    for (; settled < tickets.size(); ++now) {
      await([&] { return is_full(tickets.size() - settled); });
      clock.advance(1ms);
      for (std::size_t d = 0; d < devices.size(); ++d) {
        if (devices[d]->held() == 0) continue;
        if (--left[d] > 0) continue;
        left[d] = steps[d];
        devices[d]->release_first(1);
        await_settled(++settled);
      }
    }
    return now;
  }
  /// Returns how many jobs completed on each device.
  std::map<std::string, int> ran_on() const {
    std::map<std::string, int> jobs;
    for (const Placement& placement : scheduler->recent()) ++jobs[std::string(placement.device())];
    return jobs;
  }
  void check_results() {
    for (Ticket& ticket : tickets) {
      const auto outcome = ticket.wait(Deadline(60s));
      INFO((outcome ? std::string() : outcome.error().describe()));
      CHECK(outcome);
    }
    for (const auto& value : values) CHECK(value->front() == 2.0f);
    check_counts(scheduler->metrics());
  }

  Kernel<ReadWrite<float>, float> kernel = test::host_scale();
  ManualClock clock;
  std::vector<Scripted> devices;
  std::vector<std::unique_ptr<std::vector<float>>> values;
  std::optional<ContextPool> pool;
  std::optional<Scheduler> scheduler;
  std::vector<Ticket> tickets;
};

/// Kernels are to be built for one device, for 5 ms, and a test ends their builds.
class SlowBuilder final : public test::Builder {
 public:
  SlowBuilder(std::string device, Result<void> begun)
      : Builder(Clock::steady()), device_(std::move(device)), begun_(std::move(begun)) {}
  std::optional<Duration> build_cost(const device::Program&,
                                     const device::DeviceBase& device) const override {
    return device.info().id == device_ && !is_built ? std::optional<Duration>(5ms) : std::nullopt;
  }
  Result<void> begin_build(const std::shared_ptr<const device::Program>&,
                           const std::shared_ptr<device::DeviceBase>&) override {
    ++begins;
    return begun_;
  }
  std::atomic<int> begins{0};
  std::atomic<bool> is_built{false};

 private:
  const std::string device_;
  const Result<void> begun_;
};

}  // namespace

TEST_CASE("equal devices share the jobs: two run twice as many in the same time, four four times",
          "[scheduler]") {
  constexpr int jobs = 64;
  for (const std::size_t count : {1u, 2u, 4u}) {
    INFO(count << " devices");
    Gpus gpus(std::vector<std::string>(count, "L4"));
    gpus.submit(jobs);
    const std::uint32_t steps = gpus.run(std::vector<std::uint32_t>(count, 1), [&](std::size_t left) {
      return gpus.in_flight() == std::min(count, left);
    });
    CHECK(steps == jobs / count);
    CHECK(gpus.ran_on().size() == count);
    for (const auto& [device, ran] : gpus.ran_on()) CHECK(ran == static_cast<int>(jobs / count));
    gpus.check_results();
  }
}

TEST_CASE("a first device that is ten times slower than the second runs few of the jobs", "[scheduler]") {
  constexpr int jobs = 64;
  constexpr double ideal = jobs / (1 + 1 / 10.0);  // steps
  Gpus gpus({"slow", "fast"});
  gpus.submit(jobs);
  const std::uint32_t steps = gpus.run(
      {10, 1}, [&](std::size_t left) { return gpus.devices[1]->held() == 1 || gpus.in_flight() == left; });
  INFO(steps << " steps, at best " << ideal);
  CHECK(steps <= 1.3 * ideal);
  CHECK(gpus.ran_on()["cuda:1"] > 50);
  gpus.check_results();
}

TEST_CASE("a device is tried after its kernels were built, and no job waits for that",
          "[scheduler][trials]") {
  const bool fails = GENERATE(false, true);
  const auto builder = std::make_shared<SlowBuilder>(
      "cuda:1", fails ? Result<void>(Error(Errc::compile_failed, "No.")) : Result<void>());
  Gpus gpus({"first", "second"}, {}, builder);
  const auto run = [&](int jobs) {
    for (int i = 0; i < jobs; ++i) {
      gpus.submit(1);
      await([&] { return gpus.in_flight() == 1; });
      gpus.clock.advance(1ms);
      for (const Scripted& device : gpus.devices)
        if (device->held() > 0) device->release_first(1);
      await([&] { return gpus.tickets.back().ready(); });
    }
  };
  run(5);
  CHECK(builder->begins == 0);  // the kernel has not run as long as its build takes
  run(60);
  // It is asked for again after it has run for 5 ms more, or, if the build has failed, twice as long.
  if (fails)
    CHECK((builder->begins >= 1 && builder->begins <= 4));
  else
    CHECK((builder->begins >= 2 && builder->begins <= 14));
  CHECK(gpus.ran_on().size() == 1);
  builder->is_built = true;
  run(130);
  CHECK(gpus.ran_on()["cuda:1"] > 0);
  gpus.check_results();
}

TEST_CASE("a job says how long it was expected to take, and which device was slower", "[scheduler]") {
  Gpus gpus({"slow", "fast"});
  gpus.submit(64);
  gpus.run({10, 1},
           [&](std::size_t left) { return gpus.devices[1]->held() == 1 || gpus.in_flight() == left; });
  std::map<RefusalCode, int> codes;
  for (const Ticket& ticket : gpus.tickets) {
    const Explanation explanation = ticket.explain();
    const Candidate& ran = explanation.candidates.at(0);
    if (ran.device == "cuda:1") ++codes[explanation.candidates.at(1).code];
    CHECK(ran.took > 0ms);
  }
  CHECK(codes[RefusalCode::trial] == 1);
  CHECK(codes[RefusalCode::slower] > 30);
  const SchedulerMetrics now = gpus.scheduler->metrics();
  CHECK(now.trials == 1);
  CHECK(now.taken_time > 30ms);
  CHECK(now.expected_time > now.taken_time / 3);
  CHECK(now.expected_time < now.taken_time * 3);
  gpus.submit(1);
  await([&] { return gpus.in_flight() == 1; });
  gpus.clock.advance(2ms);
  gpus.devices[1]->release();
  const Ticket& last = gpus.tickets.back();
  await([&] { return last.ready(); });
  const Explanation explanation = last.explain();
  REQUIRE(explanation.candidates.size() == 2);
  const auto& [ran, passed] = std::tie(explanation.candidates[0], explanation.candidates[1]);
  // A thread may start a job a step later than it could.
  REQUIRE(ran.estimate);
  CHECK(ran.estimate->time < 3ms);
  CHECK(ran.estimate->runs > 30);
  CHECK(ran.took == 2ms);
  REQUIRE(passed.estimate);
  CHECK(passed.estimate->time > 5ms);
  CHECK(passed.estimate->runs > 0);
  CHECK(ran.reason.starts_with("expected "));
  CHECK(
      ran.reason.find(" runs), took 2 ms. 'cuda:0' comes before it, but takes longer. 'cuda' comes next for "
                      "custom work of 4 bytes.") != std::string::npos);
  CHECK(passed.reason.starts_with("jobs like it take "));
  CHECK(passed.reason.find(" runs) there, and ") != std::string::npos);
  CHECK(passed.reason.ends_with(" runs) on 'cuda:1'."));
  CHECK(explanation.json().find(R"("took_ms":2.0)") != std::string::npos);
  CHECK(explanation.json().find(R"("estimate":{"time_ms":)") != std::string::npos);
}

TEST_CASE("the metrics count the jobs that an idle device has taken from another one", "[scheduler]") {
  Gpus gpus({"first", "second"}, {.committed_per_lane = 1, .placement = PlacementMode::table});
  gpus.submit(2);
  await([&] { return gpus.in_flight() == 2; });
  CHECK(gpus.scheduler->metrics().moves == 0);  // it has not completed
  for (const Scripted& device : gpus.devices) device->release();
  gpus.check_results();
  CHECK(gpus.scheduler->metrics().moves == 1);
  CHECK(gpus.scheduler->metrics().trials == 0);
  CHECK(gpus.scheduler->metrics().expected_time == 0ms);
}

TEST_CASE("a job of equal devices says which one was busy", "[scheduler]") {
  Gpus gpus({"L4", "L4"});
  gpus.submit(2);
  await([&] { return gpus.in_flight() == 2; });
  for (const Scripted& device : gpus.devices) device->release();
  gpus.check_results();
  const Explanation first = gpus.tickets[0].explain(), second = gpus.tickets[1].explain();
  CHECK(first.candidates[0].device == "cuda:0");
  CHECK(first.candidates[1].code == RefusalCode::lower_preference);
  REQUIRE(second.candidates.size() == 2);
  CHECK(second.candidates[0].device == "cuda:1");
  CHECK(second.candidates[1].device == "cuda:0");
  CHECK(second.candidates[1].verdict == Candidate::Verdict::passed);
  CHECK(second.candidates[1].code == RefusalCode::busy);
  CHECK(second.candidates[1].reason == "'cuda:1' had less to do.");
  CHECK(second.text().find("'cuda:0' comes before it, but had more to do.") != std::string::npos);
}

TEST_CASE("a job that names one of several equal devices waits for it", "[scheduler]") {
  Gpus gpus({"L4", "L4"});
  gpus.submit(4, {.on = "cuda:1"});
  const std::uint32_t steps = gpus.run({1, 1}, [&](std::size_t) { return gpus.devices[1]->held() == 1; });
  CHECK(steps == 4);
  CHECK(gpus.ran_on() == std::map<std::string, int>{{"cuda:1", 4}});
}

TEST_CASE("a job that names the backend runs on any of its equal devices", "[scheduler]") {
  Gpus gpus({"L4", "L4"});
  gpus.submit(4, {.on = "cuda"});
  CHECK(gpus.run({1, 1}, [&](std::size_t) { return gpus.in_flight() == 2; }) == 2);
}

TEST_CASE("the jobs of equal devices run on the others when one is lost", "[scheduler]") {
  Gpus gpus({"L4", "L4", "L4"});
  gpus.submit(30);
  await([&] { return gpus.in_flight() == 3; });
  gpus.devices[1]->lose();
  for (const Scripted& device : gpus.devices) device->release();
  gpus.check_results();
  const auto ran = gpus.ran_on();
  CHECK(ran.count("cuda:1") == 0);
  CHECK(ran.at("cuda:0") + ran.at("cuda:2") == 30);
}

TEST_CASE("a job whose equal device fails runs on the next one", "[scheduler]") {
  Gpus gpus({"L4", "L4"});
  gpus.devices[0]->fail_at(test::ScriptedDevice::Step::submit, Errc::internal);
  for (const Scripted& device : gpus.devices) device->release();
  gpus.submit(20);
  gpus.check_results();
  CHECK(gpus.ran_on() == std::map<std::string, int>{{"cuda:1", 20}});
}

TEST_CASE("jobs of unlike devices wait for the first one while few wait", "[scheduler]") {
  Gpus gpus({"A100", "L4"}, {.committed_per_lane = 4, .placement = PlacementMode::table});
  gpus.submit(4);
  CHECK(gpus.run({1, 1}, [&](std::size_t) { return gpus.devices[0]->held() == 1; }) == 4);
  CHECK(gpus.ran_on() == std::map<std::string, int>{{"cuda:0", 4}});
}

TEST_CASE("the order of priorities holds over equal devices", "[scheduler]") {
  Gpus gpus({"L4", "L4"});
  gpus.submit(2);
  await([&] { return gpus.in_flight() == 2; });
  gpus.submit(2, {.priority = Priority::low});
  gpus.submit(2, {.priority = Priority::high});
  gpus.run({1, 1}, [&](std::size_t left) { return gpus.in_flight() == std::min<std::size_t>(left, 2); });
  std::vector<std::uint64_t> order;
  for (const Placement& placement : gpus.scheduler->recent()) order.push_back(placement.number);
  CHECK(std::set(order.begin() + 2, order.begin() + 4) == std::set<std::uint64_t>{5, 6});
}

TEST_CASE("plans for equal devices are spread over them, and over the rest when one ends", "[scheduler]") {
  Gpus gpus({"L4", "L4", "L4"});
  std::vector<std::vector<float>> values(6, std::vector<float>(4, 1.0f));
  const auto device_of = [](const Plan& plan) { return plan.description().steps[0].device; };
  const auto compile = [&](std::vector<float>& value) {
    Graph graph;
    graph.add(test::host_scale()(value, 2.0f));
    return graph.compile(*gpus.scheduler).value();
  };
  std::vector<Plan> plans;
  std::map<std::string, int> plans_on;
  for (auto& value : values) ++plans_on[device_of(plans.emplace_back(compile(value)))];
  CHECK(plans_on == std::map<std::string, int>{{"cuda:0", 2}, {"cuda:1", 2}, {"cuda:2", 2}});
  const PlanDescription::Step step = plans[1].description().steps[0];
  CHECK(step.candidates[0].reason.find("'cuda:0' comes before it, but had more to do.") != std::string::npos);
  CHECK(step.candidates[1].code == RefusalCode::busy);
  plans.erase(plans.begin() + 1);
  CHECK(device_of(compile(values[1])) == "cuda:1");
  for (const Scripted& device : gpus.devices) device->release();
  for (Plan& plan : plans) CHECK(plan.run().wait());
}

TEST_CASE("a batch on an equal device runs each of its jobs once, and they tell that device", "[scheduler]") {
  Gpus gpus({"L4", "L4"}, {.committed_per_lane = 1, .batch_limit = test::shares_submissions});
  const auto occupy = [&] {
    gpus.submit(2);
    await([&] { return gpus.in_flight() == 2; });
  };
  occupy();  // their times are known then
  gpus.clock.advance(1us);
  for (const Scripted& device : gpus.devices) device->release();
  gpus.await_settled(2);
  for (const Scripted& device : gpus.devices) device->hold();
  occupy();
  gpus.submit(10);
  gpus.devices[1]->release();
  for (std::size_t job = 4; job < 14; ++job) {
    const auto outcome = gpus.tickets[job].wait(Deadline(60s));
    REQUIRE(outcome);
    CHECK(outcome->device().id == "cuda:1");
    CHECK(outcome->jobs_in_submission() == 10);
    CHECK(gpus.values[job]->front() == 2.0f);
  }
  gpus.devices[0]->release();
  gpus.await_settled(14);
  CHECK(gpus.devices[1]->count(test::ScriptedDevice::Step::submit) == 3);
  check_counts(gpus.scheduler->metrics());
}
