// Jobs that prefer a device.
#include <wye/wye.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rig.hpp"
#include "scheduler/placement.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::Scripted;

namespace {

/// Two unlike GPUs with one lane each, of which the first one comes first in the table.
struct Rig {
  explicit Rig(SchedulerOptions options = {}) {
    for (const Scripted& device : devices) device->hold();
    options.clock = &clock;
    options.batch_limit = 1;
    scheduler.emplace(test::scheduler_on(pool, devices, std::move(options)));
  }
  Ticket submit(const JobOptions& options) {
    return scheduler->submit(kernel(values.emplace_back(1, 1.0f), 1.0f), options);
  }
  /// Runs a job, which takes a time, on one of the devices. Returns its id.
  std::string run(const JobOptions& options, Duration took = 1ms) {
    Ticket ticket = submit(options);
    await([&] { return devices[0]->held() + devices[1]->held() > 0 || ticket.ready(); });
    clock.advance(took);
    for (const Scripted& device : devices)
      if (device->held() > 0) device->release_first(1);
    const auto outcome = ticket.wait();
    return outcome ? outcome->device().id : outcome.error().sentence();
  }

  ManualClock clock;
  std::vector<Scripted> devices = test::unlike_gpus("cuda:0", "vulkan:0");
  ContextPool pool = test::pool_of(devices, {.lanes_per_device = 1, .clock = &clock});
  Kernel<ReadWrite<float>, float> kernel = test::host_scale();
  std::deque<std::vector<float>> values;  // each job has its own, so they wait for no other job
  std::optional<Scheduler> scheduler;
};

}  // namespace

TEST_CASE("a preferred device comes first, by its id, its backend or as a GPU", "[scheduler][prefer]") {
  const PlacementMode mode = GENERATE(PlacementMode::learned, PlacementMode::table);
  Rig rig({.placement = mode});
  CHECK(rig.run({}) == "cuda:0");
  CHECK(rig.run({.prefer = "vulkan"}) == "vulkan:0");
  CHECK(rig.run({.prefer = "vulkan:0"}) == "vulkan:0");
  CHECK(rig.run({.prefer = "gpu"}) == "cuda:0");
  for (int i = 0; i < 100; ++i) REQUIRE(rig.run({.prefer = "vulkan"}, 5ms) == "vulkan:0");  // and no trial
  Ticket ticket = rig.submit({.prefer = "vulkan"});
  await([&] { return rig.devices[1]->held() == 1; });
  rig.devices[1]->release();
  REQUIRE(ticket.wait());
  const Explanation explanation = ticket.explain();
  CHECK(explanation.candidates[0].reason.ends_with("The job prefers 'vulkan'."));
}

TEST_CASE("a job runs elsewhere if the devices that it prefers refuse it or fail", "[scheduler][prefer]") {
  Rig rig;
  rig.devices[1]->set_script([](test::ScriptedDevice::Step step) {
    return step == test::ScriptedDevice::Step::submit ? std::optional(Error(Errc::unavailable, "No."))
                                                      : std::nullopt;
  });
  CHECK(rig.run({.prefer = "vulkan"}) == "cuda:0");
  rig.devices[1]->lose();
  CHECK(rig.run({.prefer = "vulkan"}) == "cuda:0");
}

TEST_CASE("a job leaves the device that it prefers only if another one completes it before it could start",
          "[scheduler][prefer]") {
  using scheduler::decide_move, scheduler::Move;
  // Two jobs of 4 ms wait for one device. The second one would start there after 4 ms and complete after 8 ms.
  CHECK(decide_move({.run = 4ms, .before = 8ms}, 3ms) == Move::first);
  CHECK(decide_move({.run = 4ms, .before = 8ms}, 7ms) == Move::first);
  CHECK(decide_move({.run = 4ms, .before = 8ms, .until_start = true}, 3ms) == Move::first);
  CHECK(decide_move({.run = 4ms, .before = 8ms, .until_start = true}, 7ms) == Move::none);
  CHECK(decide_move({.run = 4ms, .before = 16ms, .until_start = true}, 7ms) == Move::last);
  CHECK(decide_move({.jobs = 9, .until_start = true}, 1ms) == Move::none);
  Rig rig;
  rig.run({.on = "cuda:0"}, 20ms), rig.run({.on = "vulkan:0"}, 10ms);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 2; ++i) tickets.push_back(rig.submit({.prefer = "vulkan"}));
  await([&] { return rig.devices[1]->held() == 1; });
  CHECK(rig.devices[0]->held() == 0);  // it would complete the second one after 20 ms; it starts after 10
  for (int i = 0; i < 5; ++i) tickets.push_back(rig.submit({.prefer = "vulkan"}));
  await([&] { return rig.devices[0]->held() == 1; });  // the last one would start after 60 ms
  for (const Scripted& device : rig.devices) device->release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
  CHECK(rig.scheduler->metrics().moves >= 1);
}

TEST_CASE("a job that prefers one of several equal devices waits for it", "[scheduler][prefer]") {
  std::vector<scheduler::Choice> equal;
  const int processors[2] = {};
  for (const std::string_view id : {"cuda:0", "cuda:1"})
    equal.push_back({.backend = "cuda",
                     .type = AdapterType::discrete,
                     .name = "L4",
                     .id = id,
                     .silicon = &processors[equal.size()]});
  const auto devices = scheduler::find_groups(equal, PlacementMode::learned);
  const scheduler::Table table({}, devices, PlacementMode::learned);
  const scheduler::Row& row = table.preferences.row(workload_types::custom, Bytes{0});
  const scheduler::Row preferring = scheduler::preferring(row, "cuda:1");
  CHECK(preferring.devices == std::vector<std::size_t>{1, 0});
  const auto runs = [](std::size_t) { return true; };
  CHECK(scheduler::home_at(row, 0, runs).is_shared);
  CHECK_FALSE(scheduler::home_at(preferring, 1, runs).is_shared);
  CHECK(scheduler::home_at(scheduler::preferring(row, "cuda"), 0, runs).is_shared);
}

TEST_CASE("a preference that names no adapter is an error", "[scheduler][prefer]") {
  Rig rig;
  const auto outcome = rig.submit({.prefer = "tpu"}).wait();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error() == Errc::not_found);
  CHECK(outcome.error().sentence().find("'tpu'") != std::string::npos);
  const auto estimated = rig.scheduler->estimate(rig.kernel(rig.values.back(), 1.0f), {.prefer = "tpu"});
  REQUIRE_FALSE(estimated);
  CHECK(rig.scheduler->estimate(rig.kernel(rig.values.back(), 1.0f), {.prefer = "vulkan"})
            ->candidates[0]
            .device == "vulkan:0");
}
