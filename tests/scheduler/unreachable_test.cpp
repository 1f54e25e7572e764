// Jobs whose `start_by` cannot be reached are refused when they are ready, if the scheduler is told
// to.
#include <wye/wye.hpp>

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::check_counts;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

/// A kernel whose run time is not known.
Kernel<Read<float>, Write<float>> another_kernel() {
  return Kernel<Read<float>, Write<float>>::make(
             {.name = "another", .sources = {host([](Range, std::span<const float>, std::span<float>) {})}})
      .value();
}

/// A device whose jobs take 10 ms each of a clock that moves only with them. One is in flight on
/// each lane.
struct Device10 {
  explicit Device10(SchedulerOptions options, std::uint32_t lanes = 1, bool has_run = true) {
    device->set_script([this](Step step) -> std::optional<Error> {
      if (step == Step::submit) clock.advance(10ms);
      return std::nullopt;
    });
    options.clock = &clock;
    scheduler.emplace(test::scheduler_of({device}, std::move(options), {.lanes_per_device = lanes}));
    if (has_run) {
      auto first = submit();
      REQUIRE(test::settled(first) == std::nullopt);
    }
    device->hold();
    for (std::uint32_t i = 0; i < lanes; ++i) waiting.push_back(submit());
    while (device->held() < lanes) std::this_thread::yield();
  }
  ~Device10() {
    device->release();
    for (Ticket& one : waiting) (void)one.wait(Deadline(60s)).has_value();
    check_counts(scheduler->metrics());
  }
  Ticket submit(JobOptions options = {}) {
    return scheduler->submit(kernel(*input, out.emplace_back(input->size())), options);
  }
  void wait_for_lane(int jobs, const JobOptions& options = {}) {
    for (int i = 0; i < jobs; ++i) waiting.push_back(submit(options));
  }
  bool is_refused(JobOptions options) {
    Ticket ticket = submit(options);
    const bool is_settled = ticket.ready();
    if (is_settled) error = ticket.wait().error();
    return is_settled;  // the ticket cancels a job that waits
  }

  bool is_refused_within(Duration left) { return is_refused({.start_by = Deadline(left)}); }

  Kernel<Read<float>, Write<float>> kernel = test::copy();
  ManualClock clock;
  Scripted device = scripted("cuda:0");
  std::vector<float> ones = {1.0f}, hundred = std::vector<float>(100, 1.0f);
  std::vector<float>* input = &ones;
  std::list<std::vector<float>> out;
  std::vector<Ticket> waiting;
  std::optional<Scheduler> scheduler;
  std::optional<Error> error;
};

}  // namespace

TEST_CASE("a job that cannot start in time is refused at once, with the numbers", "[scheduler]") {
  Device10 on({.refuse_unreachable = true});
  on.wait_for_lane(3);
  CHECK_FALSE(on.is_refused({.start_by = Deadline(30ms)}));
  REQUIRE(on.is_refused({.start_by = Deadline(29ms)}));
  CHECK(*on.error == Errc::timed_out);
  CHECK(
      on.error->sentence() ==
      "Job 'copy' was refused: it is expected to start after 30 ms on 'cuda:0' (3 jobs run before it, 10 ms "
      "each and 1 at a time), and it is to start within 29 ms.");
  CHECK(on.scheduler->metrics().timed_out == 1);
  CHECK_FALSE(on.is_refused({}));
  CHECK_FALSE(on.is_refused({.priority = Priority::high, .start_by = Deadline(1ms)}));
  on.waiting.back().cancel();
  CHECK_FALSE(on.is_refused({.start_by = Deadline(29ms)}));
  CHECK(on.is_refused({.start_by = Deadline(19ms)}));
}

TEST_CASE("no job is refused for its start_by unless the option is set and run times are known",
          "[scheduler]") {
  {
    Device10 off({});
    off.wait_for_lane(3);
    CHECK_FALSE(off.is_refused({.start_by = Deadline(1ms)}));
  }
  {
    Device10 on({.refuse_unreachable = true}, 1, false);
    on.wait_for_lane(3);
    CHECK_FALSE(on.is_refused({.start_by = Deadline(1ms)}));
  }
  {
    Device10 on({.refuse_unreachable = true});
    const auto known = std::exchange(on.kernel, another_kernel());
    on.wait_for_lane(3);
    CHECK_FALSE(on.is_refused({.start_by = Deadline(1ms)}));
    on.kernel = known;
    on.input = &on.hundred;  // no job of this size has run either
    on.wait_for_lane(3);
    CHECK_FALSE(on.is_refused({.start_by = Deadline(1ms)}));
    on.input = &on.ones;
    on.wait_for_lane(1);
    on.kernel = another_kernel();
    CHECK(on.is_refused({.start_by = Deadline(1ms)}));
  }
}

TEST_CASE("the jobs that run at a time divide the time until a job can start", "[scheduler]") {
  Device10 on({.refuse_unreachable = true}, 2);
  on.wait_for_lane(6);
  CHECK_FALSE(on.is_refused({.start_by = Deadline(30ms)}));
  CHECK(on.is_refused({.start_by = Deadline(29ms)}));
}

TEST_CASE("jobs with later deadlines do not make an earlier one unreachable", "[scheduler]") {
  Device10 on({.order = JobOrder::earliest_deadline, .refuse_unreachable = true});
  on.wait_for_lane(3, {.start_by = Deadline(1min)});
  CHECK_FALSE(on.is_refused({.start_by = Deadline(1ms)}));
  on.wait_for_lane(1, {.priority = Priority::high});
  CHECK(on.is_refused({.start_by = Deadline(9ms)}));
  CHECK_FALSE(on.is_refused({.start_by = Deadline(10ms)}));
}

TEST_CASE("a job is checked when its predecessors have completed", "[scheduler]") {
  Device10 on({.refuse_unreachable = true});
  on.wait_for_lane(3);
  Ticket last = on.submit({.start_by = Deadline(50ms), .after = {on.waiting.front()}});
  CHECK_FALSE(last.ready());
  on.clock.advance(25ms);
  on.device->release_first(1);  // two jobs wait then, for one lane
  CHECK(test::settled(last) == Errc::timed_out);
}

TEST_CASE("a running job counts until it is expected to end", "[scheduler]") {
  Device10 on({.refuse_unreachable = true}, 1, false);
  on.device->release();
  REQUIRE(on.waiting.front().wait());
  on.device->set_script({});
  on.device->hold();
  on.wait_for_lane(1);
  test::await([&] { return on.device->held() == 1; });
  CHECK_FALSE(on.is_refused_within(10ms));
  REQUIRE(on.is_refused_within(9ms));
  CHECK(
      on.error->sentence() ==
      "Job 'copy' was refused: it is expected to start after 10 ms on 'cuda:0', and it is to start within 9 "
      "ms.");
  on.clock.advance(4ms);
  CHECK_FALSE(on.is_refused_within(6ms));
  CHECK(on.is_refused_within(5ms));
  on.clock.advance(1min);  // it may end at any time
  CHECK_FALSE(on.is_refused_within(1ns));
}

TEST_CASE("a job waits for the device that starts it in time, and is refused if none does", "[scheduler]") {
  ManualClock clock;
  const std::vector<Scripted> devices = test::unlike_gpus();
  Scheduler scheduler =
      test::scheduler_of(devices, {.refuse_unreachable = true, .clock = &clock}, {.lanes_per_device = 1});
  const auto kernel = test::copy();
  const std::vector<float> in{1.0f};
  std::list<std::vector<float>> out;
  const auto submit = [&](const JobOptions& options = {}) {
    return scheduler.submit(kernel(in, out.emplace_back(1)), options);
  };
  const auto submit_within = [&](Duration left) { return submit({.start_by = Deadline(left)}); };
  for (const Scripted& device : devices) device->hold();
  std::vector<Ticket> tickets;
  const auto await_held = [&](std::size_t device) {
    test::await([&] { return devices[device]->held() == 1; });
  };
  for (const auto& [device, took] : {std::pair(0u, 1ms), std::pair(1u, 10ms)}) {
    Ticket known = submit({.on = devices[device]->info().id});
    await_held(device);
    clock.advance(took);
    devices[device]->release_first(1);
    REQUIRE(known.wait());
  }
  tickets.push_back(submit({.on = "cuda:1"}));
  await_held(1);
  clock.advance(8ms);
  for (int i = 0; i < 6; ++i) tickets.push_back(submit());
  await_held(0);

  Ticket refused = submit_within(1ms);
  REQUIRE(test::settled(refused) == Errc::timed_out);
  CHECK(refused.wait().error().sentence() ==
        "Job 'copy' was refused: it is expected to start after 2 ms on 'cuda:1', and it is to start within 1 "
        "ms.");
  tickets.push_back(submit_within(6ms));  // the faster device starts it in time
  Ticket moved = submit_within(3ms);
  CHECK_FALSE(moved.ready());
  devices[1]->release_first(1);
  await_held(1);
  devices[1]->release();
  const auto outcome = moved.wait();
  REQUIRE(outcome);
  CHECK(outcome->device().id == "cuda:1");
  CHECK(moved.explain().candidates[1].code == RefusalCode::busy);
  devices[0]->release();
  for (Ticket& ticket : tickets) CHECK(ticket.wait());
}
