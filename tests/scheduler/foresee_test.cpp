// Where a job would run, without running it.
#include <wye/wye.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::Scripted;

namespace {

/// Two GPUs with one lane each, the second one ten times faster, on a clock that the test advances.
struct Rig {
  explicit Rig(std::shared_ptr<device::ExecutableProvider> provider = nullptr) {
    for (const Scripted& device : devices) device->hold();
    scheduler.emplace(
        test::scheduler_on(pool, devices, {.batch_limit = 1, .clock = &clock}, std::move(provider)));
  }
  Job job(std::size_t n = 1) { return kernel(n == 1 ? value : many, 1.0f); }
  Result<Explanation> estimate(const JobOptions& options = {}) { return scheduler->estimate(job(), options); }
  /// Runs a job on a device.
  void run(std::size_t device, Duration took) {
    Ticket ticket = scheduler->submit(job(), {.on = devices[device]->info().id});
    await([&] { return devices[device]->held() == 1; });
    clock.advance(took);
    devices[device]->release_first(1);
    REQUIRE(ticket.wait());
  }

  ManualClock clock;
  std::vector<Scripted> devices = test::unlike_gpus();
  ContextPool pool = test::pool_of(devices, {.lanes_per_device = 1, .clock = &clock});
  Kernel<ReadWrite<float>, float> kernel = test::host_scale();
  std::vector<float> value{1.0f};
  std::vector<float> many = std::vector<float>(64, 1.0f);
  std::optional<Scheduler> scheduler;
};

/// A kernel that is built nowhere, each time for 20 ms.
class Unbuilt final : public test::Builder {
 public:
  Unbuilt() : Builder(Clock::steady()) {}
  std::optional<Duration> build_cost(const device::Program&, const device::DeviceBase&) const override {
    return 20ms;
  }
};

}  // namespace

TEST_CASE("an estimate of a job without known times names the first device", "[scheduler]") {
  Rig rig(std::make_shared<Unbuilt>());
  const auto where = rig.estimate({.tag = "tenant"});
  REQUIRE(where);
  CHECK(where->job == "host_scale");
  CHECK(where->tag == "tenant");
  REQUIRE(where->candidates.size() == 2);
  const Candidate& first = where->candidates[0];
  CHECK(first.device == "cuda:0");
  CHECK(first.verdict == Candidate::Verdict::chosen);
  CHECK(first.reason == "Its time there is not known. 'cuda' comes first for custom work of 4 bytes.");
  CHECK_FALSE(first.took);
  REQUIRE(first.estimate);
  CHECK(first.estimate->time == 0ms);
  CHECK(first.estimate->runs == 0);
  CHECK(first.estimate->build == 20ms);
  CHECK(where->candidates[1].verdict == Candidate::Verdict::passed);
  CHECK(where->candidates[1].code == RefusalCode::lower_preference);
  CHECK(where->candidates[1].estimate->build == 20ms);
  CHECK(where->text().starts_with("job 'host_scale' (tag 'tenant')\nwould run on cuda:0 (A): Its time"));
}

TEST_CASE("an estimate names the faster device, its wait and the times of all, and runs nothing",
          "[scheduler]") {
  Rig rig;
  rig.run(0, 10ms), rig.run(1, 1ms);
  const auto idle = rig.estimate();
  REQUIRE(idle);
  CHECK(idle->candidates[0].device == "cuda:1");
  CHECK(idle->candidates[0].estimate->wait == 0ms);
  CHECK(idle->candidates[0].reason ==
        "expected 1 ms (runs 1 +- 0; 1 runs). 'cuda:0' comes before it, but takes longer. 'cuda' comes next "
        "for "
        "custom work of 4 bytes.");
  CHECK(idle->candidates[1].device == "cuda:0");
  CHECK(idle->candidates[1].code == RefusalCode::slower);
  CHECK(idle->candidates[1].estimate->time == 10ms);
  CHECK(rig.scheduler->metrics().submitted == 2);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(rig.scheduler->submit(rig.job(), {.on = "cuda:1"}));
  await([&] { return rig.devices[1]->held() == 1; });
  for (int i = 0; i < 3; ++i) tickets.push_back(rig.scheduler->submit(rig.job()));
  const auto busy = rig.estimate();
  REQUIRE(busy);
  CHECK(busy->candidates[0].device == "cuda:1");
  CHECK(busy->candidates[0].estimate->wait == 7ms);
  CHECK(busy->candidates[0].reason.starts_with("expected 8 ms (waits 7, runs 1 +- 0; 1 runs). "));
  CHECK(busy->json().find(R"("wait_ms":7.0)") != std::string::npos);
  CHECK(rig.estimate({.priority = Priority::high})->candidates[0].estimate->wait == 1ms);
  const auto other = rig.scheduler->estimate(rig.job(64));
  REQUIRE(other);
  CHECK(other->candidates[0].estimate->runs == 0);
  CHECK(other->candidates[0].estimate->time > 1ms);
  CHECK(other->candidates[0].reason.find("from other sizes") != std::string::npos);
  for (const Scripted& device : rig.devices) device->release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
  CHECK(rig.scheduler->metrics().completed == 9);
}

TEST_CASE("the costs are those of the jobs that have completed, until they are forgotten", "[scheduler]") {
  Rig rig;
  CHECK(rig.scheduler->costs().empty());
  rig.run(0, 10ms), rig.run(1, 1ms), rig.run(1, 1ms);
  const std::vector<Cost> costs = rig.scheduler->costs();
  REQUIRE(costs.size() == 2);
  CHECK(costs[0].job == "host_scale");
  CHECK(costs[0].type == workload_types::custom);
  CHECK(costs[0].device == "cuda:0");
  CHECK(costs[0].least == Bytes{4});
  CHECK(costs[0].estimate.time == 10ms);
  CHECK(costs[1].device == "cuda:1");
  CHECK(costs[1].estimate.time == 1ms);
  CHECK(costs[1].estimate.runs == 2);
  CHECK(costs[1].last == rig.clock.now());
  rig.scheduler->forget();
  CHECK(rig.scheduler->costs().empty());
  CHECK(rig.estimate()->candidates[0].device == "cuda:0");
  rig.run(1, 1ms);
  CHECK(rig.estimate()->candidates[0].device == "cuda:0");  // the first one is not known to be slower
  rig.run(0, 10ms);
  CHECK(rig.estimate()->candidates[0].device == "cuda:1");
}

TEST_CASE("an estimate of arrays and of a job after others leaves them as they are", "[scheduler]") {
  Rig rig;
  const Array<float> array = test::array_in(rig.pool, std::vector<float>{1.0f, 2.0f});
  Ticket before = rig.scheduler->submit(rig.job());
  await([&] { return rig.devices[0]->held() == 1; });
  CHECK(rig.scheduler->estimate(rig.kernel(array, 3.0f), {.after = {before}}));
  for (const Scripted& device : rig.devices) device->release();
  CHECK(before.wait());
  CHECK(rig.scheduler->run(rig.kernel(array, 3.0f)));
  const auto view = array.read();
  REQUIRE(view);
  CHECK(std::vector<float>(view->begin(), view->end()) == std::vector<float>{3.0f, 6.0f});
}

TEST_CASE("an estimate of a job that cannot run is the error of the job", "[scheduler]") {
  Rig rig;
  const auto nowhere = rig.estimate({.on = "cuda:7"});
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().sentence().find("'cuda:7'") != std::string::npos);
  for (const Scripted& device : rig.devices) device->lose();
  const auto lost = rig.estimate();
  REQUIRE_FALSE(lost);
  CHECK(lost.error() == Errc::device_lost);
  CHECK(lost.error().sentence() ==
        "No device can run job 'host_scale'. cuda:0: Device 'cuda:0' was lost. cuda:1: Device "
        "'cuda:1' was lost.");
  rig.scheduler->close();
}
