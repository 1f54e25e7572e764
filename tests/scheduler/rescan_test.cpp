// Jobs on devices that appear after the scheduler was opened.
#include <wye/wye.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"
#include "support/scripted_machine.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::check_counts;
using test::ScriptedMachine;

namespace {

constexpr std::uint64_t scaled_items = 64;

/// A scheduler on the devices of a machine; its jobs prefer CUDA.
struct Growing {
  explicit Growing(PoolOptions options = {}) : pool(machine_with_first().open(std::move(options))) {}
  ScriptedMachine& machine_with_first() {
    machine.plug("vulkan:0", 141);
    return machine;
  }
  Result<Outcome> scale(const JobOptions& options = {}) {
    std::vector<float> x(scaled_items, 1.0f);
    auto done = scheduler.submit(test::host_scale()(x, 2.0f), options).wait(Deadline(60s));
    if (done) CHECK(x == std::vector<float>(scaled_items, 2.0f));
    return done;
  }

  ScriptedMachine machine;
  ContextPool pool;
  Scheduler scheduler =
      test::scheduler_on(pool, {},
                         {.placement = PlacementMode::table,
                          .preferences = {{workload_types::custom, Bytes{0}, {"cuda", "vulkan"}}}});
};

}  // namespace

TEST_CASE("jobs run on a device that has appeared, and metrics and explanations name it",
          "[scheduler][rescan]") {
  Growing growing;
  const auto before = growing.scale();
  REQUIRE(before);
  CHECK(before->device().id == "vulkan:0");
  CHECK(before->reason() == "'vulkan:0' is the only device.");
  growing.machine.plug("cuda:0", 142);
  REQUIRE(growing.pool.rescan().value().size() == 1);
  std::vector<float> x(scaled_items, 1.0f);
  Ticket ticket = growing.scheduler.submit(test::host_scale()(x, 2.0f));
  const auto after = ticket.wait();
  REQUIRE(after);
  CHECK(after->device().id == "cuda:0");
  CHECK(after->reason() == "'cuda' comes first for custom work of 256 bytes.");
  CHECK(before->reason() == "'vulkan:0' is the only device.");  // when it was placed
  const Explanation explanation = ticket.explain();
  REQUIRE(explanation.candidates.size() == 2);
  CHECK(explanation.candidates[0].device == "cuda:0");
  CHECK(explanation.candidates[1].device == "vulkan:0");
  CHECK(explanation.candidates[1].code == RefusalCode::lower_preference);
  const SchedulerMetrics metrics = growing.scheduler.metrics();
  CHECK(metrics.completed_by_backend.at("cuda") == 1);
  CHECK(metrics.completed_by_backend.at("vulkan") == 1);
  check_counts(metrics);
  CHECK(growing.scale({.on = "vulkan"})->device().id == "vulkan:0");
  CHECK(growing.scheduler.recent().back().device() == "vulkan:0");
}

TEST_CASE("a job that names a device which appears later is refused before, and runs after",
          "[scheduler][rescan]") {
  Growing growing;
  CHECK(growing.scale({.on = "cuda:0"}).error() == Errc::not_found);
  growing.machine.plug("cuda:0", 143);
  REQUIRE(growing.pool.rescan());
  CHECK(growing.scale({.on = "cuda:0"})->device().id == "cuda:0");
}

TEST_CASE("a job falls back from a device that has appeared to an earlier one", "[scheduler][rescan]") {
  Growing growing;
  const auto added = growing.machine.plug("cuda:0", 144);
  REQUIRE(growing.pool.rescan());
  added->devices.back()->fail_at(test::ScriptedDevice::Step::submit, Errc::internal);
  CHECK(growing.scale()->device().id == "vulkan:0");
  CHECK(growing.scheduler.metrics().fallbacks == 1);
}

TEST_CASE("threads submit jobs while devices appear", "[scheduler][rescan]") {
  Growing growing({.lanes_per_device = 2, .lease_timeout = 60s});
  std::atomic<bool> ends{false};
  std::atomic<int> failed{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!ends) {
        std::vector<std::vector<float>> values(4, std::vector<float>(scaled_items, 1.0f));
        std::vector<Ticket> tickets;
        for (auto& x : values) tickets.push_back(growing.scheduler.submit(test::host_scale()(x, 2.0f)));
        for (Ticket& ticket : tickets) {
          const auto outcome = ticket.wait();
          failed += !outcome;
          if (outcome) (void)outcome->reason();
          ++done;
        }
        (void)growing.scheduler.metrics();
        (void)growing.scheduler.recent();
      }
    });
  for (int i = 0; i < 8; ++i) {
    growing.machine.plug("cuda:" + std::to_string(i), static_cast<std::uint8_t>(150 + i));
    const int before = done;
    CHECK(growing.pool.rescan().value().size() == 1);
    while (done < before + 8) std::this_thread::yield();
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  const SchedulerMetrics metrics = growing.scheduler.metrics();
  check_counts(metrics);
  CHECK(metrics.completed_by_backend.at("cuda") > 0);
}
