// Jobs, arrays and plans on a device that is lost and opened again.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "graph_kernels.hpp"
#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::await;
using test::check_counts;
using test::contents;
using test::Reopening;
using test::Scripted;
using test::scripted;

namespace {

constexpr std::uint64_t item_count = 256;

/// A scheduler on a device that can be opened again, and on other devices, which cannot.
struct Mortal {
  explicit Mortal(std::vector<Scripted> others = {}, const Clock* clock = nullptr)
      : devices(std::move(others)), adapter(std::make_shared<Reopening>(device->info())) {
    devices.insert(devices.begin(), device);
    pool.emplace(test::pool_of(
        devices, {.lanes_per_device = 2, .lease_timeout = Duration::max(), .clock = clock}, {adapter}));
    scheduler.emplace(test::scheduler_on(*pool, devices, {.clock = clock}));
  }
  /// Loses the device that is in use now.
  void lose() const { (adapter->devices.empty() ? device : adapter->devices.back())->lose(); }
  Result<Outcome> scale(std::vector<float>& x, float s = 2.0f, const JobOptions& options = {}) {
    return scheduler->submit(test::host_scale()(x, s), options).wait(Deadline(60s));
  }

  Scripted device = scripted("vulkan:0", AdapterType::discrete, {}, 71);
  std::vector<Scripted> devices;
  std::shared_ptr<Reopening> adapter;
  std::optional<ContextPool> pool;
  std::optional<Scheduler> scheduler;
};

Monitoring monitor_with_errors(std::uint64_t count) {
  Monitoring values;
  values.uncorrected_errors.value = count;
  return values;
}

/// Has the work of a device that was opened again stay in flight, but for that of the pool's check.
void hold_after_check(test::ScriptedDevice& device) {
  const auto submitted = std::make_shared<std::atomic<int>>(0);
  device.set_script([&device, submitted](test::ScriptedDevice::Step step) {
    if (step == test::ScriptedDevice::Step::submit && ++*submitted == 2) device.hold();
    return std::optional<Error>();
  });
}

}  // namespace

TEST_CASE("a job that was submitted before the loss of its device runs once it is opened again",
          "[scheduler][recovery]") {
  Mortal mortal;
  std::vector<float> x(item_count, 1.0f), y(item_count, 1.0f);
  REQUIRE(mortal.scale(x));
  mortal.device->hold();
  std::vector<std::vector<float>> held(2, y);
  std::vector<Ticket> in_flight;
  for (auto& one : held) in_flight.push_back(mortal.scheduler->submit(test::host_scale()(one, 2.0f)));
  await([&] { return mortal.device->held() == 2; });
  Ticket waiting = mortal.scheduler->submit(test::host_scale()(y, 3.0f));
  mortal.lose();
  for (Ticket& one : in_flight)
    CHECK(one.wait(Deadline(60s)).error() == Errc::device_lost);  // nowhere else to go
  const auto done = waiting.wait(Deadline(60s));
  if (!done) FAIL(done.error().describe());
  CHECK(done->device().id == "vulkan:0");
  CHECK(y == std::vector<float>(item_count, 3.0f));
  CHECK(mortal.pool->metrics().recoveries == 1);
  REQUIRE(mortal.scale(x));
  CHECK(x == std::vector<float>(item_count, 4.0f));
  check_counts(mortal.scheduler->metrics());
}

TEST_CASE("a loss and a recovery are events of the device", "[scheduler][recovery]") {
  Mortal mortal;
  base::Journal& journal = base::state_of(*mortal.pool)->journal();
  std::vector<std::string> changes;
  auto events = journal.listen<base::DeviceChanged>([&](const base::DeviceChanged& event) {
    using Change = base::DeviceChanged::Change;
    const bool is_right = std::string_view(event.device) == "vulkan:0" &&
                          std::string_view(event.name) == mortal.device->info().name &&
                          event.error.has_value() == (event.change == Change::lost);
    changes.emplace_back(!is_right ? "wrong" : event.change == Change::lost ? "lost" : "recovered");
  });
  std::vector<float> x(item_count, 1.0f);
  REQUIRE(mortal.scale(x));
  mortal.lose();
  REQUIRE(mortal.scale(x));
  REQUIRE(journal.flush());
  CHECK(changes == std::vector<std::string>{"lost", "recovered"});
}

TEST_CASE("jobs in flight on a lost device run on the next one, and later ones on the device again",
          "[scheduler][recovery]") {
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other});
  std::vector<float> x(item_count, 1.0f);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  mortal.device->hold();
  Ticket in_flight = mortal.scheduler->submit(test::host_scale()(x, 2.0f));
  await([&] { return mortal.device->held() == 1; });
  mortal.lose();
  CHECK(in_flight.wait(Deadline(60s))->device().id == "cuda:0");
  CHECK(x == std::vector<float>(item_count, 4.0f));
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  CHECK(x == std::vector<float>(item_count, 8.0f));
}

TEST_CASE("an array that is valid elsewhere is copied to a device that was opened again",
          "[scheduler][recovery]") {
  Mortal mortal;
  const auto read = test::array_in(*mortal.pool, std::vector<float>(item_count, 1.0f));
  auto written = test::array_in(*mortal.pool, std::vector<float>(item_count, 1.0f));
  const auto scale = test::host_scale();
  REQUIRE(mortal.scheduler->run(scale(read, 2.0f)));
  CHECK(contents(read) == std::vector<float>(item_count, 2.0f));  // on the host too
  REQUIRE(mortal.scheduler->run(scale(written, 2.0f)));           // on the device only
  mortal.lose();
  REQUIRE(mortal.scheduler->run(scale(read, 2.0f)));
  CHECK(contents(read) == std::vector<float>(item_count, 4.0f));
  CHECK(mortal.scheduler->run(scale(written, 2.0f)).error() == Errc::device_lost);
  CHECK(written.read().error() == Errc::device_lost);
  REQUIRE(written.write());  // the application overwrites it
  REQUIRE(mortal.scheduler->run(scale(written, 1.0f)));
  CHECK(mortal.pool->metrics().recoveries == 1);
}

TEST_CASE("a plan is placed again on a device that was opened again", "[scheduler][recovery]") {
  Mortal mortal;
  std::vector<float> x(item_count, 1.0f);
  Graph graph;
  const auto scale = test::host_scale();
  (void)graph.add(Job::sequence("both", workload_types::custom, scale(x, 2.0f), {scale(x, 3.0f)}));
  auto plan = graph.compile(*mortal.scheduler);
  REQUIRE(plan);
  for (int i = 0; i < 3; ++i) {
    x.assign(item_count, 1.0f);
    const auto done = plan->run().wait(Deadline(60s));
    REQUIRE(done);
    CHECK(done->device().id == "vulkan:0");
    CHECK(x == std::vector<float>(item_count, 6.0f));
    if (i == 1) mortal.lose();
  }
  CHECK(mortal.pool->metrics().recoveries == 1);
}

TEST_CASE("every job settles once under losses, and all that it needs comes back", "[scheduler][recovery]") {
  ManualClock clock;  // the back-off passes at once
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other}, &clock);
  std::atomic<int> settled{0}, wrong{0};
  std::atomic<bool> ends{false};
  constexpr int threads = 4;
  const int jobs = test::rounds(500);
  std::thread reaper([&] {
    while (!ends) {
      for (const Device& device : mortal.pool->devices())
        if (device.id() == "vulkan:0")
          std::static_pointer_cast<test::ScriptedDevice>(base::state_of(device))->lose();
      clock.advance(31s);
      std::this_thread::sleep_for(200us);
    }
  });
  std::vector<std::thread> hosts;
  for (int t = 0; t < threads; ++t)
    hosts.emplace_back([&] {
      std::vector<float> x(item_count);
      for (int n = 0; n < jobs; ++n) {
        x.assign(item_count, 1.0f);
        Ticket ticket =
            mortal.scheduler->submit(test::host_scale()(x, 2.0f), {.time_limit = Duration::max()});
        ticket.then([&](const Result<Outcome>&) { ++settled; });
        const auto done = ticket.wait(Deadline::never());
        if (done && x == std::vector<float>(item_count, 2.0f)) continue;
        if (++wrong == 1) WARN((done ? std::string("a wrong value") : done.error().describe()));
      }
    });
  for (std::thread& host : hosts) host.join();
  ends = true;
  reaper.join();
  CHECK(wrong == 0);
  // The last function may run after the wait for its ticket.
  await([&] { return settled == threads * jobs; });
  CHECK(settled == threads * jobs);
  check_counts(mortal.scheduler->metrics());
  CHECK(mortal.pool->metrics().recoveries > 0);
  CHECK(mortal.pool->metrics().active == 0);
  for (const SiliconInfo& silicon : mortal.pool->silicon()) CHECK(silicon.used == 0);
  for (const auto& one : mortal.adapter->devices)
    CHECK((one->buffers_alive() == 0 && (one == mortal.adapter->devices.back() || one->lanes_alive() == 0)));
}

TEST_CASE(
    "jobs of a batch run alone if their device is lost before the submission, and closing waits for them",
    "[scheduler][recovery]") {
  std::atomic<bool> loses{false};
  const Scripted first = scripted("vulkan:0", AdapterType::discrete, {}, 71);
  first->set_script([&](test::ScriptedDevice::Step step) -> std::optional<Error> {
    if (step != test::ScriptedDevice::Step::create_buffer || !loses.exchange(false)) return std::nullopt;
    first->lose();
    return *first->lost();
  });
  const auto adapter = std::make_shared<Reopening>(first->info());
  adapter->prepare = hold_after_check;
  ContextPool pool =
      test::pool_of({first}, {.lanes_per_device = 2, .lease_timeout = Duration::max()}, {adapter});
  Scheduler scheduler = test::scheduler_on(pool, {first}, {});
  const auto scale = test::host_scale();
  std::vector<std::vector<float>> values(8, std::vector<float>(4, 1.0f));
  for (auto& one : values) REQUIRE(scheduler.submit(scale(one, 1.0f)).wait());  // its run time is known
  first->hold();
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < values.size(); ++i) {
    tickets.push_back(scheduler.submit(scale(values[i], 2.0f)));
    if (i == 1) await([&] { return first->held() == 2; });
  }
  loses = true;
  first->release();
  await([&] { return pool.metrics().recoveries == 1 && adapter->devices.back()->held() != 0; });
  adapter->devices.back()->release();
  int completed = 0;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const std::optional<Errc> error = test::settled(tickets[i]);
    if (error) CHECK(*error == Errc::device_lost);  // it was in flight on the other lane
    CHECK(values[i] == std::vector<float>(4, error ? 1.0f : 2.0f));
    completed += error ? 0 : 1;
  }
  CHECK(completed >= 5);
  CHECK(scheduler.close(Deadline(1min)));
}

TEST_CASE("a kernel that was in flight at three losses of a device runs elsewhere, and other kernels there",
          "[scheduler][recovery]") {
  ManualClock clock;
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other}, &clock);
  std::vector<float> x(item_count, 1.0f), y(item_count, 1.0f);
  const auto newest = [&] {
    return mortal.adapter->devices.empty() ? mortal.device : mortal.adapter->devices.back();
  };
  const auto faulty = test::host_scale("faulty");
  const auto lose_with = [&](std::size_t jobs) {
    CHECK(mortal.scale(y)->device().id == "vulkan:0");  // it is open again
    newest()->hold();
    std::vector<std::vector<float>> values(jobs, std::vector<float>(item_count, 1.0f));
    std::vector<Ticket> tickets;
    for (auto& one : values) tickets.push_back(mortal.scheduler->submit(faulty(one, 2.0f)));
    await([&] { return newest()->held() == jobs; });
    mortal.lose();
    for (Ticket& ticket : tickets) CHECK(ticket.wait(Deadline(60s))->device().id == "cuda:0");
    clock.advance(31s);
  };
  const auto run_faulty = [&](const JobOptions& options = {}) {
    return mortal.scheduler->submit(faulty(x, 2.0f), options);
  };
  lose_with(2);  // one loss, whatever the number of jobs
  lose_with(1);
  CHECK(run_faulty().wait(Deadline(60s))->device().id == "vulkan:0");  // completes, and is forgiven
  lose_with(1);
  lose_with(2);
  lose_with(1);
  CHECK(mortal.scale(y)->device().id == "vulkan:0");
  Ticket elsewhere = run_faulty();
  CHECK(elsewhere.wait(Deadline(60s))->device().id == "cuda:0");
  const Explanation why = elsewhere.explain();
  const auto refused = std::find_if(why.candidates.begin(), why.candidates.end(),
                                    [](const Candidate& one) { return one.device == "vulkan:0"; });
  REQUIRE(refused != why.candidates.end());
  CHECK(refused->code == RefusalCode::kernel_blamed);
  CHECK(refused->reason ==
        "Kernel 'faulty' was in flight there at 3 losses of the device, and has not completed since.");
  const auto pinned = run_faulty({.on = "vulkan"}).wait(Deadline(60s));
  REQUIRE_FALSE(pinned);
  CHECK(pinned.error() == Errc::device_lost);
  CHECK(pinned.error().sentence().find("Kernel 'faulty' was in flight there") != std::string::npos);
  CHECK(mortal.pool->metrics().recoveries == 5);
  clock.advance(61s);  // it is tried again
  lose_with(1);
  CHECK(run_faulty().wait(Deadline(60s))->device().id == "cuda:0");
  clock.advance(61s);  // since the fourth loss two minutes have to pass
  CHECK(run_faulty().wait(Deadline(60s))->device().id == "cuda:0");
  clock.advance(61s);
  CHECK(run_faulty().wait(Deadline(60s))->device().id == "vulkan:0");
  CHECK(run_faulty().wait(Deadline(60s))->device().id == "vulkan:0");
  check_counts(mortal.scheduler->metrics());
}

TEST_CASE("a graph is compiled for a device that was lost and can be opened again", "[scheduler][recovery]") {
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other});
  std::vector<float> x(item_count, 1.0f);
  Graph graph;
  (void)graph.add(test::host_scale()(x, 2.0f));
  mortal.lose();
  auto plan = graph.compile(*mortal.scheduler);
  REQUIRE(plan);
  CHECK(plan->run().wait(Deadline(60s))->device().id == "vulkan:0");
  CHECK(x == std::vector<float>(item_count, 2.0f));
  CHECK(mortal.pool->metrics().recoveries == 1);
}

TEST_CASE("graphs that are compiled after three losses with a kernel in flight run it elsewhere",
          "[scheduler][recovery]") {
  ManualClock clock;
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other}, &clock);
  std::vector<float> x(item_count, 1.0f), y(item_count, 1.0f);
  Graph faulty, good;
  (void)faulty.add(test::host_scale("faulty")(x, 2.0f));
  (void)good.add(test::host_scale()(y, 2.0f));
  const auto run = [&](Graph& graph) {
    auto plan = graph.compile(*mortal.scheduler);
    REQUIRE(plan);
    return plan->run();
  };
  const auto runs_on = [&](Graph& graph) { return run(graph).wait(Deadline(60s))->device().id; };
  constexpr std::size_t submissions = 3;  // of a run: it uploads, runs its step, and downloads
  mortal.device->hold();
  mortal.adapter->prepare = hold_after_check;
  Ticket twice = run(faulty);
  await([&] { return mortal.device->held() == submissions; });
  mortal.lose();
  await([&] {
    return mortal.pool->metrics().recoveries == 1 && mortal.adapter->devices.back()->held() == submissions;
  });
  mortal.adapter->prepare = nullptr;
  mortal.lose();
  CHECK(twice.wait(Deadline(60s))->device().id == "cuda:0");  // the device is in quarantine for a time
  clock.advance(31s);
  CHECK(runs_on(good) == "vulkan:0");
  mortal.adapter->devices.back()->hold();
  Ticket third = run(faulty);
  await([&] { return mortal.adapter->devices.back()->held() == submissions; });
  mortal.lose();
  CHECK(third.wait(Deadline(60s))->device().id == "cuda:0");
  clock.advance(31s);
  CHECK(runs_on(good) == "vulkan:0");
  CHECK(runs_on(faulty) == "cuda:0");
  clock.advance(61s);  // it is tried again
  CHECK(runs_on(faulty) == "vulkan:0");
  check_counts(mortal.scheduler->metrics());
}

TEST_CASE("a device that does not complete a job in time runs only jobs that no other device can run",
          "[scheduler][recovery]") {
  ManualClock clock;
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other}, &clock);
  const auto health = [&] { return mortal.pool->silicon().at(0).devices.at(0).health; };
  mortal.device->hold();
  std::vector<float> x(item_count, 1.0f), y(item_count, 1.0f), z(item_count, 1.0f);
  Ticket late = mortal.scheduler->submit(test::host_scale()(x, 2.0f), {.time_limit = 1h});
  await([&] { return mortal.device->held() == 1; });
  clock.advance(1h);
  CHECK(test::settled(late) == Errc::timed_out);
  CHECK(health() == DeviceHealth::suspect);
  Ticket elsewhere = mortal.scheduler->submit(test::host_scale()(y, 2.0f));
  REQUIRE(elsewhere.wait(Deadline(60s)));
  CHECK(elsewhere.wait()->device().id == "cuda:0");
  const Explanation why = elsewhere.explain();
  REQUIRE(why.candidates.size() == 2);
  CHECK(why.candidates[1].device == "vulkan:0");
  CHECK(why.candidates[1].code == RefusalCode::device_suspect);
  CHECK(why.candidates[1].reason == "work of a job that ran out of time was in flight on it.");
  Ticket pinned = mortal.scheduler->submit(test::host_scale()(z, 2.0f), {.on = "vulkan"});
  await([&] { return mortal.device->held() == 2; });
  mortal.device->release();
  CHECK(pinned.wait(Deadline(60s))->device().id == "vulkan:0");
  CHECK(mortal.scale(y)->device().id == "vulkan:0");  // its work has completed
  CHECK(health() == DeviceHealth::healthy);
  CHECK(z == std::vector<float>(item_count, 2.0f));
  CHECK(x == std::vector<float>(item_count, 1.0f));
}

TEST_CASE("a device whose memory has new errors runs only jobs that no other device can run, for a minute",
          "[scheduler][recovery]") {
  ManualClock clock;
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other}, &clock);
  const auto state = [&] { return mortal.pool->silicon().at(0).devices.at(0); };
  std::vector<float> x(item_count, 1.0f);
  mortal.device->set_monitor(monitor_with_errors(2));
  CHECK(mortal.scale(x)->device().id == "vulkan:0");  // errors from before are no news
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  CHECK(mortal.device->readings() == 1);
  mortal.device->set_monitor(monitor_with_errors(5));
  clock.advance(9s);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  CHECK(mortal.device->readings() == 1);
  CHECK(state().health == DeviceHealth::healthy);
  clock.advance(2s);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");  // reads the monitor
  CHECK(mortal.device->readings() == 2);
  CHECK(state().health == DeviceHealth::suspect);
  REQUIRE(state().last_fault);
  CHECK(*state().last_fault == Errc::corrupt);
  CHECK(state().last_fault->sentence() ==
        "Processor '" + mortal.pool->silicon().at(0).name +
            "' has had 5 memory errors since its driver was loaded that ECC could not correct (before: 2).");
  clock.advance(59s);
  Ticket elsewhere = mortal.scheduler->submit(test::host_scale()(x, 2.0f));
  CHECK(elsewhere.wait(Deadline(60s))->device().id == "cuda:0");
  const Explanation why = elsewhere.explain();
  REQUIRE(why.candidates.size() == 2);
  CHECK(why.candidates[1].code == RefusalCode::memory_errors);
  CHECK(why.candidates[1].reason == "its memory has had errors lately that ECC could not correct.");
  CHECK(mortal.scale(x, 2.0f, {.on = "vulkan"})->device().id == "vulkan:0");
  clock.advance(2s);
  CHECK(state().health == DeviceHealth::healthy);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  mortal.device->set_monitor({});  // a monitor without the value is no news
  clock.advance(11s);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  CHECK(mortal.device->readings() == 4);
  CHECK(mortal.scale(x, 2.0f, {.on = "cuda"})->device().id == "cuda:0");
  CHECK(other->readings() == 1);  // it has no values
}

TEST_CASE("a processor that is slowed by heat keeps its jobs, and reports the heat once",
          "[scheduler][recovery]") {
  ManualClock clock;
  const Scripted other = scripted("cuda:0");
  Mortal mortal({other}, &clock);
  const auto state = [&] { return mortal.pool->silicon().at(0).devices.at(0); };
  std::vector<float> x(item_count, 1.0f);
  Monitoring values;
  values.temperature.value = 93.5;
  values.slowed_by_heat.value = false;
  mortal.device->set_monitor(values);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  CHECK_FALSE(state().last_fault);
  values.slowed_by_heat.value = true;
  mortal.device->set_monitor(values);
  clock.advance(11s);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
  REQUIRE(state().last_fault);
  CHECK(state().last_fault->sentence() == "Processor '" + mortal.pool->silicon().at(0).name +
                                              "' runs with reduced clocks because of its temperature "
                                              "(93.5 degrees Celsius).");
  CHECK(state().health == DeviceHealth::healthy);
  CHECK(mortal.scale(x)->device().id == "vulkan:0");
}
