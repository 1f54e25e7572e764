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
  CHECK(on.error->sentence() ==
        "Job 'copy' was refused: 3 jobs run before it, 10 ms each and 1 at a time, and it is to start within "
        "29 ms.");
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
