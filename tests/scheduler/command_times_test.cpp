// The times of the commands of jobs, by the clock of the device.
#include <wye/wye.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "flight/operands.hpp"
#include "rig.hpp"
#include "scheduler/time_book.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;
using device::StampClock;
using scheduler::TimeBook;
using test::scripted;
using test::Scripted;

namespace {

/// Returns the times of the kind of a job on the devices that have run it.
TimeBook::Times times_of(const Scheduler& scheduler, const Job& job) {
  TimeBook& book = base::state_of(scheduler)->parts().times;
  TimeBook::Times found;
  for (std::uint16_t group = 0; group < 16 && found.held.count == 0; ++group)
    found = book.read(*book.row(
        {.kernels = scheduler::number_of_kernels(job),
         .size_class = static_cast<std::uint16_t>(scheduler::size_class(flight::size_of(job).count)),
         .group = group}));
  return found;
}

/// Runs a job some times, one after the other.
void run(Scheduler& scheduler, const Call& call, int times, const JobOptions& options = {}) {
  for (int i = 0; i < times; ++i) {
    Ticket ticket = scheduler.submit(call, options);
    REQUIRE(test::settled(ticket) == std::nullopt);
  }
}

}  // namespace

TEST_CASE("some jobs of a kind are timed by the clock of their device, or else by the host's",
          "[scheduler][times]") {
  for (const bool has_clock : {true, false}) {
    INFO(has_clock);
    const Scripted device = scripted("cuda:0");
    if (has_clock) device->give_clock(7us);
    Scheduler scheduler = test::scheduler_of({device}, {.batch_limit = test::shares_submissions});
    std::vector<float> x(100, 1.0f);
    const Call call = test::host_scale()(x, 1.0f);
    run(scheduler, call, 64);
    CHECK(times_of(scheduler, call).commands.count == 8);
    run(scheduler, call, 8);
    const TimeBook::Times times = times_of(scheduler, call);
    CHECK(times.held.count == 72);
    CHECK(times.run.count == 72);
    CHECK(times.commands.count == 9);
    CHECK(times.clock == (has_clock ? StampClock::device : StampClock::host));
    if (has_clock) CHECK(times.commands.mean == 7us);
    if (has_clock) CHECK(times.commands.spread == 0us);
  }
}

TEST_CASE("jobs that share a submission are not timed", "[scheduler][times]") {
  const Scripted device = scripted("cuda:0");
  device->give_clock(7us);
  ManualClock clock;  // a batch ends with the work of a millisecond
  Scheduler scheduler = test::scheduler_of(
      {device}, {.committed_per_lane = 1, .batch_limit = test::shares_submissions, .clock = &clock},
      {.lanes_per_device = 1});
  std::vector<float> x(100, 1.0f);
  const auto kernel = test::host_scale();
  const Call call = kernel(x, 1.0f);
  device->hold();
  Ticket known = scheduler.submit(call);
  test::await([&] { return device->held() == 1; });
  clock.advance(1us);
  device->release();
  REQUIRE(known.wait(Deadline(60s)));
  device->hold();
  Ticket first = scheduler.submit(call);
  test::await([&] { return device->held() == 1; });
  std::vector<std::vector<float>> memory(5, x);
  std::vector<Ticket> tickets;
  for (std::vector<float>& one : memory) tickets.push_back(scheduler.submit(kernel(one, 1.0f)));
  device->release();
  REQUIRE(first.wait(Deadline(60s)));
  for (Ticket& ticket : tickets) {
    const auto outcome = ticket.wait(Deadline(60s));
    REQUIRE(outcome);
    CHECK(outcome->jobs_in_submission() == 5);
  }
  const TimeBook::Times times = times_of(scheduler, call);
  CHECK(times.held.count == 7);
  CHECK(times.run.count == 2);
  CHECK(times.commands.count == 2);
}

TEST_CASE("the clock of a Vulkan device times the commands of jobs", "[scheduler][times]") {
  const ContextPool pool = ContextPool::open().value();
  if (!test::has_device(pool, "vulkan")) return;
  Scheduler scheduler = test::scheduler_on(pool, {}, {.batch_limit = test::shares_submissions});
  std::vector<float> x(1000, 1.0f);
  const Call call = test::scale()(x, 1.0f);
  const std::vector<Device> devices = pool.devices();
  const auto first = std::find_if(devices.begin(), devices.end(),
                                  [](const Device& device) { return device.info().backend == "vulkan"; });
  run(scheduler, call, 10, {.on = first->id()});
  const TimeBook::Times times = times_of(scheduler, call);
  REQUIRE(times.run.count == 10);
  CHECK(times.commands.count == 8);
  CHECK(times.clock == StampClock::device);
  CHECK(times.commands.mean > 0ns);
}
