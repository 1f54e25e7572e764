// Jobs that wait for a lane of their device are staged: built and copied there while their
// predecessors run.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::check_counts;
using test::Scripted;
using test::scripted;
using test::StopAt;
using Step = test::ScriptedDevice::Step;

namespace {

constexpr std::uint64_t float_count = 100, array_bytes = float_count * sizeof(float);

/// A device whose lanes are all taken by jobs in flight.
struct Full {
  explicit Full(SchedulerOptions options = {}, std::uint32_t lanes = 1, std::vector<Scripted> others = {},
                bool has_blockers = true)
      : devices(std::move(others)), lanes_(lanes) {
    devices.insert(devices.begin(), device);
    pool.emplace(test::pool_of(devices, {.lanes_per_device = lanes, .clock = options.clock}));
    scheduler.emplace(test::scheduler_on(*pool, devices, std::move(options)));
    device->hold();
    if (has_blockers) block();
  }
  /// Submits the jobs that take the lanes.
  void block() {
    for (std::uint32_t i = 0; i < lanes_; ++i)
      blockers.push_back(scheduler->submit(test::host_scale()(memory[i], 2.0f)));
    await([&] { return device->held() == lanes_; });
  }
  Array<float> array(float value = 1.0f) const {
    return test::array_in(*pool, std::vector<float>(float_count, value));
  }
  void finish() {
    device->release();
    for (Ticket& one : blockers) CHECK(one.wait(Deadline(60s)));
    check_counts(scheduler->metrics());
  }

  Scripted device = scripted("cuda:0");
  std::vector<Scripted> devices;
  std::vector<std::vector<float>> memory = std::vector<std::vector<float>>(8, std::vector<float>(1, 1.0f));
  std::optional<ContextPool> pool;
  std::optional<Scheduler> scheduler;
  std::vector<Ticket> blockers;

 private:
  std::uint32_t lanes_;
};

/// A full device that stops when it builds the kernel of the second job. Its script outlives the
/// device's jobs.
struct FullAtBuild : StopAt, Full {
  explicit FullAtBuild(SchedulerOptions options = {}) : Full(std::move(options), 1, {}, false) {
    device->set_script(script(Step::create_executable, 2));
    block();
  }
};

}  // namespace

TEST_CASE("a job that waits for a lane is built and its array copied while its predecessor runs",
          "[scheduler]") {
  Full full;
  const auto x = full.array();
  std::vector<float> y(float_count);
  auto ticket = full.scheduler->submit(test::copy()(x, y));
  await([&] { return full.scheduler->metrics().prefetches == 1; });
  CHECK(full.device->held() == 2);  // the predecessor, and the copy on another lane
  CHECK(full.device->count(Step::create_executable) == 2);
  CHECK(full.scheduler->metrics().running == 1);
  CHECK(full.scheduler->metrics().queued == 1);
  CHECK(full.scheduler->metrics().bytes_prefetched.count == array_bytes);
  CHECK_FALSE(ticket.ready());
  full.finish();
  const auto outcome = ticket.wait(Deadline(60s));
  REQUIRE(outcome);
  CHECK(y == std::vector<float>(float_count, 1.0f));
  CHECK(outcome->bytes_transferred().count == 2 * array_bytes);  // the array, and the result
  CHECK(full.scheduler->run(test::copy()(x, y))->bytes_transferred().count == array_bytes);
  CHECK(full.device->buffers_alive() == 1);  // the replica
}

TEST_CASE("committed_per_lane limits the jobs that are staged", "[scheduler]") {
  for (const std::uint32_t committed : {1u, 2u, 4u}) {
    INFO("committed_per_lane " << committed);
    Full full({.committed_per_lane = committed}, 2);
    const std::uint64_t staged = 2 * (committed - 1);
    std::vector<Array<float>> arrays;
    std::vector<Ticket> tickets;
    for (int i = 0; i < 10; ++i) {
      arrays.push_back(full.array());
      tickets.push_back(full.scheduler->submit(test::host_scale()(arrays.back(), 3.0f)));
    }
    await([&] { return full.scheduler->metrics().prefetches == staged; });
    CHECK(full.device->held() == 2 + staged);
    tickets.back().cancel();  // wakes no further staging
    CHECK(full.scheduler->metrics().prefetches == staged);
    CHECK(full.scheduler->metrics().running == 2);
    if (staged > 0) {  // the place of a cancelled job is free
      tickets.front().cancel();
      CHECK(tickets.front().wait().error() == Errc::cancelled);
      std::vector<float> one(1, 1.0f);
      auto next = full.scheduler->submit(test::host_scale()(one, 3.0f));
      await([&] { return full.scheduler->metrics().prefetches == staged + 1; });
      full.finish();
      CHECK(next.wait());
    } else {
      full.finish();
      CHECK(tickets.front().wait());
    }
    for (std::size_t i = 1; i < 9; ++i) {
      REQUIRE(tickets[i].wait(Deadline(60s)));
      CHECK(test::contents(arrays[i]) == std::vector<float>(float_count, 3.0f));
    }
    if (committed == 1) CHECK(full.scheduler->metrics().prefetches == 0);
  }
}

TEST_CASE("committed_per_lane outside of its range is refused", "[scheduler]") {
  const ContextPool pool = test::pool_of({scripted("cuda:0")});
  for (const std::uint32_t wrong : {0u, 65u}) {
    const auto refused = scheduler::open(pool, std::make_shared<test::Builder>(Clock::steady()),
                                         {.committed_per_lane = wrong});
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::invalid_argument);
    CHECK(refused.error().sentence() == "The number of jobs committed per lane (" + std::to_string(wrong) +
                                            ") is not in the range 1 to 64.");
  }
}

TEST_CASE("a staged job is cancelled at once, and users of its array wait for its copy on the device",
          "[scheduler]") {
  Full full({}, 2);
  auto x = full.array();
  auto staged = full.scheduler->submit(test::host_scale()(x, 3.0f));
  await([&] { return full.scheduler->metrics().prefetches == 1; });
  staged.cancel();
  CHECK(staged.ready());
  CHECK(staged.wait().error() == Errc::cancelled);
  for (float& value : x.write().value()) value = 5.0f;
  const std::vector<float> sevens(float_count, 7.0f);
  auto writer = full.scheduler->submit(test::copy()(sevens, x));
  full.device->release_first(1);  // a lane; the copy of the cancelled job is still in flight
  await([&] { return full.device->waits_in_flight() > 0; });
  full.finish();
  CHECK(writer.wait(Deadline(60s)));
  CHECK(test::contents(x) == sevens);
}

TEST_CASE("a staged job times out at its start_by while its device is busy", "[scheduler]") {
  Full full;
  const auto x = full.array();
  std::vector<float> y(float_count);
  auto staged = full.scheduler->submit(test::copy()(x, y), {.start_by = Deadline(200ms)});
  CHECK(staged.wait(Deadline(60s)).error() == Errc::timed_out);
  CHECK(full.device->held() >= 1);
  full.finish();
}

TEST_CASE("a job of a higher priority overtakes a staged one", "[scheduler]") {
  Full full;
  const auto x = full.array(), y = full.array();
  std::vector<int> ran;  // on the only lane
  const auto note = [&](int i) {
    return test::on_host("note", [&ran, i](Range, std::span<float>) { ran.push_back(i); });
  };
  auto first = full.scheduler->submit(note(1)(x));
  await([&] { return full.scheduler->metrics().prefetches == 1; });
  auto second = full.scheduler->submit(note(2)(y), {.priority = Priority::high});
  full.finish();
  CHECK(first.wait(Deadline(60s)));
  CHECK(second.wait(Deadline(60s)));
  CHECK(ran == std::vector<int>{2, 1});
}

TEST_CASE("a staged job whose device is lost runs on the next one", "[scheduler]") {
  const Scripted second = scripted("vulkan:0");
  Full full({}, 1, {second});
  const auto x = full.array();
  std::vector<float> y(float_count);
  auto staged = full.scheduler->submit(test::copy()(x, y));
  await([&] { return full.scheduler->metrics().prefetches == 1; });
  full.device->lose();
  const auto outcome = staged.wait(Deadline(60s));
  REQUIRE(outcome);
  CHECK(outcome->device().id == "vulkan:0");
  CHECK(y == std::vector<float>(float_count, 1.0f));
  CHECK(full.blockers[0].wait(Deadline(60s)));
}

TEST_CASE("a job that is cancelled, or runs out of time, while it is staged settles then", "[scheduler]") {
  for (const bool cancels : {true, false}) {
    INFO((cancels ? "cancelled" : "timed out"));
    ManualClock clock;
    FullAtBuild full({.clock = &clock});
    const auto x = full.array();
    std::vector<float> y(float_count);
    auto staged = full.scheduler->submit(test::copy()(x, y), {.start_by = Deadline(5s)});
    full.await();
    if (cancels)
      staged.cancel();
    else
      clock.advance(5s);
    CHECK_FALSE(staged.ready());
    full.open();
    CHECK(test::settled(staged) == (cancels ? Errc::cancelled : Errc::timed_out));
    CHECK(full.device->held() >= 1);  // the device is busy as before
    full.finish();
  }
}

TEST_CASE("a job keeps its turn while it is staged", "[scheduler]") {
  FullAtBuild full;
  std::vector<int> ran;  // on the only lane
  const auto note = [&](int i) {
    return test::on_host("note", [&ran, i](Range, std::span<float>) { ran.push_back(i); });
  };
  auto first = full.scheduler->submit(note(1)(full.memory[1]));
  full.await();
  auto second = full.scheduler->submit(note(2)(full.memory[2]));
  full.finish();  // the lane is free, and the first job takes it once it is built
  await([&] { return full.scheduler->metrics().running == 1; });
  CHECK(full.scheduler->metrics().queued == 1);
  check_counts(full.scheduler->metrics());
  full.open();
  CHECK(test::settled(first) == std::nullopt);
  CHECK(test::settled(second) == std::nullopt);
  CHECK(ran == std::vector<int>{1, 2});
}

TEST_CASE("closing settles a job that is being staged when its stage ends", "[scheduler]") {
  FullAtBuild full;
  std::vector<float> y(1, 1.0f);
  auto staged = full.scheduler->submit(test::host_scale()(y, 2.0f));
  full.await();
  std::thread closing([&] { full.scheduler->close(); });
  while (full.scheduler->run(test::host_scale()(full.memory[1], 2.0f))) std::this_thread::yield();
  CHECK_FALSE(staged.ready());
  full.open();
  CHECK(test::settled(staged) == Errc::closed);
  full.device->release();
  closing.join();
  CHECK(full.blockers[0].wait());
  check_counts(full.scheduler->metrics());
}

// Not with TSan: the abandoned scheduler keeps its threads.
TEST_CASE("closing with a deadline abandons a job that is being staged", "[scheduler][no_tsan]") {
  FullAtBuild full;
  std::vector<float> y(1, 1.0f);
  auto staged = full.scheduler->submit(test::host_scale()(y, 2.0f));
  full.await();
  const auto closed = full.scheduler->close(Deadline(50ms));
  CHECK(closed.error() == Errc::timed_out);
  CHECK(staged.wait().error() == Errc::closed);
  CHECK(full.blockers[0].wait().error() == Errc::closed);
  check_counts(full.scheduler->metrics());
  full.open();
  full.await_passed();  // the thread of the abandoned scheduler
  full.device->release();
}

TEST_CASE("an array is not copied ahead if no memory is free for it, and gives none of other arrays up",
          "[scheduler]") {
  Full full({}, 1, {}, false);
  std::atomic<bool> is_full{false};
  full.device->set_script([&](Step now) -> std::optional<Error> {
    if (now != Step::create_buffer || !is_full) return std::nullopt;
    return Error(Errc::out_of_memory, "The script has no memory now.");
  });
  full.block();
  const auto x = full.array(), y = full.array(2.0f);
  std::vector<float> a(float_count), b(float_count);
  auto first = full.scheduler->submit(test::copy()(x, a));
  await([&] { return full.scheduler->metrics().prefetches == 1; });
  is_full = true;
  const int buffers = full.device->count(Step::create_buffer);
  first.cancel();  // makes room for the next staged job
  auto second = full.scheduler->submit(test::copy()(y, b));
  await([&] { return full.device->count(Step::create_buffer) > buffers; });
  is_full = false;
  full.finish();
  CHECK(second.wait(Deadline(60s)));
  CHECK(b == std::vector<float>(float_count, 2.0f));
  CHECK(full.scheduler->metrics().prefetches == 1);
  CHECK(full.pool->metrics().evictions == 0);
}

TEST_CASE("a copy that was made ahead gives way to a running job's memory, and the job makes it again",
          "[scheduler]") {
  const Scripted device = scripted("cuda:0");
  ContextPool pool = test::pool_of({device}, {.lanes_per_device = 1});
  Scheduler scheduler = test::scheduler_on(pool, {device}, {});
  std::promise<void> reached, opened;
  std::atomic<int> refused{0};
  std::atomic<bool> is_first{true};
  // The first job stops before it allocates its memory; then the device refuses it once.
  device->set_script([&](Step now) -> std::optional<Error> {
    if (now == Step::create_lane && is_first.exchange(false)) {
      reached.set_value();
      opened.get_future().wait();
      refused = 1;
    }
    if (now == Step::create_buffer && refused.exchange(0) == 1)
      return Error(Errc::out_of_memory, "The script has no memory now.");
    return std::nullopt;
  });
  std::vector<float> first(float_count, 1.0f), y(float_count);
  const std::vector<float> values(float_count, 3.0f);
  const auto x = test::array_in(pool, values);
  auto running = scheduler.submit(test::host_scale()(first, 2.0f));
  reached.get_future().wait();
  auto staged = scheduler.submit(test::copy()(x, y));
  await([&] { return scheduler.metrics().prefetches == 1; });
  opened.set_value();
  CHECK(running.wait(Deadline(60s)));
  CHECK(staged.wait(Deadline(60s)));
  CHECK(pool.metrics().evictions == 1);
  CHECK(first == std::vector<float>(float_count, 2.0f));
  CHECK(y == values);
}
