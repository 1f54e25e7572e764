// Jobs reserve all of their memory at once, and wait for what other jobs hold.
#include <wye/wye.hpp>

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
#include "support/temporary_folder.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::await;
using test::check_counts;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

constexpr std::uint64_t values_each = 1024;  // 4 KiB

/// y = 2 x, on the host.
Kernel<Read<float>, Write<float>> twice() {
  return Kernel<Read<float>, Write<float>>::make(
             {.name = "twice",
              .sources = {host([](Range range, std::span<const float> x, std::span<float> y) {
                for (std::uint64_t i : range) y[i] = 2 * x[i];
              })}})
      .value();
}

/// A device with a budget of 12 KiB. A job of `twice` needs 8 KiB: the budget has room for one of
/// them.
struct Narrow {
  explicit Narrow(std::vector<Scripted> others = {}, PoolOptions options = {}, SchedulerOptions jobs = {})
      : devices(std::move(others)) {
    devices.insert(devices.begin(), device);
    if (options.pool_memory == Bytes{}) options.pool_memory = 12_KiB;
    pool.emplace(test::pool_of(devices, std::move(options)));
    scheduler.emplace(test::scheduler_on(*pool, devices, std::move(jobs)));
  }
  silicon::MemoryAccount& account() const { return *base::state_of(*pool)->accounts().of(*device); }

  Scripted device = scripted("cuda:0");
  std::vector<Scripted> devices;
  std::optional<ContextPool> pool;
  std::optional<Scheduler> scheduler;
};

/// The operands of a job, and its ticket.
struct One {
  explicit One(float value = 1.0f) : x(values_each, value), y(values_each, -1.0f) {}
  Ticket submit(Scheduler& scheduler, const JobOptions& options = {}) {
    return scheduler.submit(twice()(x, y), options);
  }
  bool is_right() const { return y == std::vector<float>(values_each, 2 * x.front()); }
  std::vector<float> x, y;
};

}  // namespace

TEST_CASE("a job whose memory others hold waits for them, holding nothing, and falls back nowhere",
          "[scheduler][memory]") {
  const auto other = scripted("vulkan:0");
  Narrow narrow({other});
  narrow.device->hold();
  One a(1.0f), b(2.0f);
  Ticket first = a.submit(*narrow.scheduler);
  await([&] { return narrow.device->held() == 1; });
  Ticket second = b.submit(*narrow.scheduler);
  await([&] { return narrow.scheduler->metrics().memory_waits >= 2; });
  // Unless it is being tried, it waits in its queue and holds neither memory nor a lane.
  await([&] { return narrow.scheduler->metrics().queued == 1 && narrow.account().held() == 8_KiB; });
  CHECK(narrow.pool->metrics().active == 1);
  narrow.device->release();
  CHECK(first.wait(Deadline(60s)));
  const auto outcome = second.wait(Deadline(60s));
  REQUIRE(outcome);
  CHECK(outcome->device().id == "cuda:0");
  CHECK((a.is_right() && b.is_right()));
  CHECK(outcome->queue_time() > 1ms);
  CHECK(narrow.account().held() == 0_B);
  CHECK(narrow.scheduler->metrics().fallbacks == 0);
  CHECK(narrow.pool->metrics().shortages >= 2);
  CHECK(other->steps_made() == 0);
  check_counts(narrow.scheduler->metrics());
}

TEST_CASE("jobs that each hold a part of what they need do not wait for each other", "[scheduler][memory]") {
  Narrow narrow({}, {.lanes_per_device = 4});
  constexpr int threads = 8;
  std::atomic<int> wrong{0};
  std::vector<std::thread> hosts;
  for (int t = 0; t < threads; ++t)
    hosts.emplace_back([&, t] {
      for (int n = 0; n < test::rounds(50); ++n) {
        One one(static_cast<float>(t + n));
        Ticket ticket = one.submit(*narrow.scheduler);
        const auto done = ticket.wait(Deadline(60s));
        if (!done || done->device().id != "cuda:0" || !one.is_right()) ++wrong;
      }
    });
  for (std::thread& host : hosts) host.join();
  CHECK(wrong == 0);
  CHECK(narrow.account().held() == 0_B);
  CHECK(narrow.scheduler->metrics().fallbacks == 0);
  check_counts(narrow.scheduler->metrics());
}

TEST_CASE("a job whose memory another process holds waits for it, and falls back nowhere",
          "[scheduler][memory]") {
  const TemporaryFolder folder;
  const auto card = scripted("cuda:0", AdapterType::discrete, {}, 77), other = scripted("vulkan:0");
  REQUIRE(card->silicon()->share(folder.path().string()));
  const auto process =
      silicon::MachineShare::join(folder.path().string(), std::string(30, '0') + "4d").value();
  std::atomic<std::uint64_t> held{8192};
  process->publish(held);
  ContextPool pool = test::pool_of({card, other}, {.silicon_memory = 12_KiB});
  Scheduler scheduler = test::scheduler_on(pool, {card, other}, {});
  One one;
  Ticket ticket = one.submit(scheduler);
  await([&] { return scheduler.metrics().memory_waits >= 8; });  // more than without other processes
  held = 0;
  process->publish(held);
  const auto outcome = ticket.wait(Deadline(60s));
  REQUIRE(outcome);
  CHECK(outcome->device().id == "cuda:0");
  CHECK(one.is_right());
  CHECK(process->held_elsewhere() == 0_B);
  check_counts(scheduler.metrics());
}

TEST_CASE("a job that never fits fails at once, with what it needs and the limit", "[scheduler][memory]") {
  Narrow narrow({}, {.tag_memory = {{"preview", 4_KiB}}, .lane_memory = 64_KiB});
  std::vector<float> x(4 * values_each, 1.0f), y(4 * values_each);
  const auto fails = [&](const JobOptions& options) {
    const auto done = narrow.scheduler->run(twice()(x, y), options);
    REQUIRE_FALSE(done);
    return done.error();
  };
  const Error over = fails({});
  CHECK(over == Errc::over_budget);
  CHECK(over.sentence() ==
        "Job 'twice' needs 32.0 KiB on 'cuda:0'; the budget of this runtime on 'cuda:0' is 12.0 KiB.");
  CHECK(fails({.tag = "preview"}).sentence() ==
        "Job 'twice' (tag 'preview') needs 32.0 KiB on 'cuda:0'; the budget of tag 'preview' is 4.00 KiB.");
  x.resize(16 * values_each), y.resize(16 * values_each);
  CHECK(fails({}).sentence() ==
        "Job 'twice' needs 128 KiB on 'cuda:0'; the memory limit of a lane is 64.0 KiB.");
  CHECK(narrow.scheduler->metrics().memory_waits == 0);
  CHECK(narrow.device->count(Step::create_buffer) == 0);
  CHECK(narrow.account().held() == 0_B);
}

TEST_CASE(
    "a job waits a few times for memory that no job holds, then falls back; the next ones do so at once",
    "[scheduler][memory]") {
  const auto other = scripted("vulkan:0");
  Narrow narrow({other}, {}, {.placement = PlacementMode::table});
  Lease lease = narrow.pool->lease({.on = "cuda"}).value();
  std::optional<Buffer> kept = lease.buffer<float>(2 * values_each).value();
  One a, b, c;
  CHECK(a.submit(*narrow.scheduler).wait(Deadline(60s))->device().id == "vulkan:0");
  CHECK(a.is_right());
  const std::uint64_t waits = narrow.scheduler->metrics().memory_waits;
  CHECK(waits >= 4);
  CHECK(b.submit(*narrow.scheduler).wait(Deadline(60s))->device().id == "vulkan:0");
  CHECK(narrow.scheduler->metrics().memory_waits == waits);
  SECTION("until one gets memory there") {
    kept.reset();
    CHECK(c.submit(*narrow.scheduler).wait(Deadline(60s))->device().id == "cuda:0");
    kept = lease.buffer<float>(2 * values_each).value();
    CHECK(One().submit(*narrow.scheduler).wait(Deadline(60s))->device().id == "vulkan:0");
    CHECK(narrow.scheduler->metrics().memory_waits >= waits + 4);
  }
  SECTION("and the error names the holders") {
    const auto done = c.submit(*narrow.scheduler, {.fallback = Fallback::forbid, .on = "cuda"}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::over_budget);
    CHECK(
        done.error().describe().find("this process holds 8.00 KiB of 'scripted cuda:0': 8.00 KiB in context "
                                     "'cuda:0#0'") != std::string::npos);
  }
}

TEST_CASE("a job that waits for the application's memory gets it when it is freed", "[scheduler][memory]") {
  Narrow narrow;
  Lease lease = narrow.pool->lease().value();
  std::optional<Buffer> kept = lease.buffer<float>(2 * values_each).value();
  One a;
  Ticket ticket = a.submit(*narrow.scheduler);
  await([&] { return narrow.scheduler->metrics().memory_waits >= 1; });
  kept.reset();
  CHECK(ticket.wait(Deadline(60s)));
  CHECK(a.is_right());
}

TEST_CASE("a driver that has no memory for a while is asked again", "[scheduler][memory]") {
  const auto device = scripted("cuda:0");
  std::atomic<int> refusals{3};
  device->set_script([&](Step step) -> std::optional<Error> {
    if (step != Step::create_buffer || refusals-- <= 0) return std::nullopt;
    return Error(Errc::out_of_memory, "The script has no memory now.");
  });
  Scheduler scheduler = test::scheduler_of({device});
  One a;
  const auto done = a.submit(scheduler).wait(Deadline(60s));
  REQUIRE(done);
  CHECK(a.is_right());
  CHECK(scheduler.metrics().memory_waits >= 1);
  CHECK(device->buffers_alive() == 0);
}

TEST_CASE(
    "the error for a spent budget names each device that shares it, and owners without a limit have none",
    "[scheduler][memory]") {
  const auto card = scripted("cuda:0", AdapterType::discrete, {}, 78),
             same = scripted("vulkan:0", AdapterType::discrete, {}, 78);
  for (const Bytes budget : {12_KiB, 0_B}) {
    ContextPool pool = test::pool_of({card, same}, {.pool_memory = budget});
    Scheduler scheduler = test::scheduler_on(pool, {card, same}, {});
    std::vector<float> x(4 * values_each, 1.0f), y(4 * values_each);
    const auto done = scheduler.run(twice()(x, y), {.on = "vulkan:0"});
    const auto memory = pool.silicon().front().memory;
    const auto of_runtime = std::find_if(memory.begin(), memory.end(),
                                         [](const MemoryShare& share) { return share.level == "runtime"; });
    REQUIRE(of_runtime != memory.end());
    if (budget == 0_B) {
      CHECK(done);
      CHECK_FALSE(of_runtime->limit);
    } else {
      CHECK(of_runtime->limit == budget);
      REQUIRE_FALSE(done);
      CHECK(done.error().sentence() ==
            "Job 'twice' needs 32.0 KiB on 'vulkan:0'; the budget of this runtime on 'cuda:0' and 'vulkan:0' "
            "is 12.0 KiB.");
    }
  }
}

TEST_CASE("a tag's budget holds back its own jobs", "[scheduler][memory]") {
  const auto other = scripted("vulkan:0");
  Narrow narrow({other}, {.pool_memory = 64_KiB, .tag_memory = {{"preview", 8_KiB}}});
  narrow.device->hold();
  One a, b, c;
  Ticket first = a.submit(*narrow.scheduler, {.tag = "preview"});
  await([&] { return narrow.device->held() == 1; });
  Ticket second = b.submit(*narrow.scheduler, {.tag = "preview"});
  await([&] { return narrow.scheduler->metrics().memory_waits >= 1; });
  await([&] { return narrow.account().held() == 8_KiB; });
  const auto tags = narrow.pool->silicon().front().memory.back();
  CHECK((tags.owner == "preview" && tags.level == "tag" && tags.held == 8_KiB && tags.limit == 8_KiB));
  One d;
  Ticket beside = d.submit(*narrow.scheduler, {.tag = "other"});
  await([&] { return narrow.device->held() == 2; });  // it does not wait for the tag
  narrow.device->release();
  CHECK(beside.wait(Deadline(60s))->device().id == "cuda:0");
  CHECK(first.wait(Deadline(60s))->device().id == "cuda:0");
  CHECK(second.wait(Deadline(60s))->device().id == "cuda:0");
  CHECK(c.submit(*narrow.scheduler, {.tag = "other"}).wait(Deadline(60s)));
  CHECK((a.is_right() && b.is_right() && c.is_right() && d.is_right()));
  CHECK(narrow.pool->silicon().front().memory.back().held == 0_B);
}

TEST_CASE("jobs that the limit of their tag has held back run on a device one after the other",
          "[scheduler][memory]") {
  const auto device = scripted("cuda:0");
  Scheduler scheduler =
      test::scheduler_of({device}, {.tags = {{.tag = "few", .concurrent = 1}}}, {.lanes_per_device = 2});
  device->hold();
  std::vector<One> jobs(6);
  std::vector<Ticket> tickets;
  for (One& one : jobs) tickets.push_back(one.submit(scheduler, {.tag = "few"}));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    await([&] { return device->held() == 1; });
    device->release_first(1);
    CHECK(tickets[i].wait(Deadline(60s)));
  }
  for (const One& one : jobs) CHECK(one.is_right());
  test::check_counts(scheduler.metrics());
}

TEST_CASE("jobs wait for memory that a lease of their tag holds, and other jobs run meanwhile",
          "[scheduler][memory]") {
  Narrow narrow({}, {.pool_memory = 64_KiB, .tag_memory = {{"preview", 8_KiB}}});
  Lease lease = narrow.pool->lease({.tag = "preview"}).value();
  std::optional<Buffer> kept = lease.buffer<float>(values_each).value();
  std::vector<One> waiting(3), others(20);
  std::vector<Ticket> tickets;
  for (One& one : waiting) tickets.push_back(one.submit(*narrow.scheduler, {.tag = "preview"}));
  await([&] { return narrow.scheduler->metrics().memory_waits >= 1; });
  for (One& one : others) CHECK(one.submit(*narrow.scheduler).wait(Deadline(60s)));
  for (const Ticket& ticket : tickets) CHECK_FALSE(ticket.ready());
  kept.reset();
  for (Ticket& ticket : tickets) CHECK(ticket.wait(Deadline(60s)));
  for (const One& one : waiting) CHECK(one.is_right());
  for (const One& one : others) CHECK(one.is_right());
}

TEST_CASE("memory of a tag that nothing frees fails one job after the lease timeout, and the next at once",
          "[scheduler][memory]") {
  Narrow narrow({}, {.pool_memory = 64_KiB, .tag_memory = {{"preview", 8_KiB}}, .lease_timeout = 50ms});
  Lease lease = narrow.pool->lease({.tag = "preview"}).value();
  std::optional<Buffer> kept = lease.buffer<float>(values_each).value();
  One a, b, c;
  const auto run = [&](One& one) {
    return one.submit(*narrow.scheduler, {.tag = "preview"}).wait(Deadline(60s));
  };
  CHECK(run(a).error() == Errc::over_budget);
  const std::uint64_t waits = narrow.scheduler->metrics().memory_waits;
  CHECK(waits > 0);
  CHECK(run(b).error() == Errc::over_budget);
  CHECK(narrow.scheduler->metrics().memory_waits == waits);
  kept.reset();
  CHECK(run(c));
  CHECK(narrow.pool->metrics().shortages == 0);  // the processor is not short of memory
}

TEST_CASE("a job that waits for memory can be cancelled, expire and be closed", "[scheduler][memory]") {
  ManualClock clock;
  Narrow narrow({}, {}, {.clock = &clock});
  narrow.device->hold();
  One a, b, c, d;
  Ticket first = a.submit(*narrow.scheduler, {.time_limit = Duration::max()});
  await([&] { return narrow.device->held() == 1; });
  const auto waits_again = [&] {
    const std::uint64_t waits = narrow.scheduler->metrics().memory_waits;
    await([&] { return narrow.scheduler->metrics().memory_waits > waits; });
  };
  Ticket cancelled = b.submit(*narrow.scheduler);
  waits_again();
  cancelled.cancel();
  CHECK(test::settled(cancelled) == Errc::cancelled);
  Ticket late = c.submit(*narrow.scheduler, {.start_by = 1h});
  waits_again();
  clock.advance(1h);
  CHECK(late.wait(Deadline(60s)).error() == Errc::timed_out);
  Ticket closed = d.submit(*narrow.scheduler);
  waits_again();
  std::thread release([&] {
    await([&] { return closed.ready(); });
    narrow.device->release();
  });
  narrow.scheduler->close();
  release.join();
  const Errc code = closed.wait().error().code();
  CHECK((code == Errc::closed || code == Errc::over_budget));  // the latter if it was being tried
  CHECK(first.wait());
  CHECK(narrow.account().held() == 0_B);
  check_counts(narrow.scheduler->metrics());
}

TEST_CASE("a job that waits for a job without memory does not wait for ever", "[scheduler][memory]") {
  // The CPU's jobs share a queue, and the outer job holds what the inner one lacks until that has
  // settled.
  const auto cpu = scripted("cpu:0", AdapterType::cpu, {Feature::host_memory});
  const auto gpu = scripted("cuda:0", AdapterType::discrete, {}, 7);
  const auto same = scripted("vulkan:0", AdapterType::discrete, {}, 7);
  ContextPool pool = test::pool_of({cpu, gpu, same}, {.pool_memory = 12_KiB, .lease_timeout = 100ms});
  Scheduler scheduler = test::scheduler_on(pool, {cpu, gpu, same}, {.concurrent_jobs = 1});
  Lease lease = pool.lease({.on = "cuda"}).value();
  const Buffer kept = lease.buffer<float>(2 * values_each).value();
  std::optional<Errc> inner;
  One one;
  std::vector<float> x(1);
  const auto outer = test::on_host("outer", [&](Range, std::span<float>) {
    Ticket ticket = one.submit(scheduler, {.fallback = Fallback::forbid, .on = "cuda"});
    const auto done = ticket.wait();
    if (!done) inner = done.error().code();
  });
  CHECK(scheduler.submit(outer(x), {.on = "cpu"}).wait(Deadline(60s)));
  CHECK(inner == Errc::over_budget);
}

TEST_CASE("a shortage takes slots from a processor, and jobs that complete bring them back",
          "[scheduler][memory]") {
  Narrow narrow({}, {.lanes_per_device = 4, .slots = 4});
  const auto slots = [&] { return narrow.pool->silicon().front().slots; };
  narrow.device->hold();
  One a, b;
  std::vector<float> small(16, 1.0f);
  Ticket first = a.submit(*narrow.scheduler);
  await([&] { return narrow.device->held() == 1; });
  Ticket tiny = narrow.scheduler->submit(test::host_scale()(small, 2.0f));
  await([&] { return narrow.device->held() == 2; });
  Ticket second = b.submit(*narrow.scheduler);
  await([&] { return narrow.scheduler->metrics().memory_waits >= 1; });
  CHECK(slots() == 2);
  narrow.device->release();
  for (Ticket* one : {&first, &tiny, &second}) CHECK(one->wait(Deadline(60s)));
  std::vector<std::uint32_t> seen;
  for (int n = 0; n < 64; ++n) {
    CHECK(narrow.scheduler->run(test::host_scale()(small, 1.0f)));
    if (seen.empty() || seen.back() != slots()) seen.push_back(slots());
  }
  // The job may have tried again while one of the others ran.
  REQUIRE(seen.size() >= 3);
  CHECK(seen.front() == 5 - seen.size());
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK(seen[i] == seen[i - 1] + 1);
}

TEST_CASE("the array of a job and its host memory are reserved together", "[scheduler][memory]") {
  Narrow narrow({}, {.pool_memory = 16_KiB});
  const auto array = test::array_in(*narrow.pool, std::vector<float>(values_each, 3.0f));
  narrow.device->hold();
  One a;
  std::vector<float> y(values_each), z(values_each);
  Ticket first = a.submit(*narrow.scheduler);  // 8 KiB
  await([&] { return narrow.device->held() == 1; });
  // 4 KiB for the array, which would fit, and 8 KiB of its own.
  Ticket second = narrow.scheduler->submit(
      Job::sequence("both", workload_types::custom, twice()(array, y), {twice()(y, z)}));
  await([&] { return narrow.scheduler->metrics().memory_waits >= 1; });
  await([&] { return narrow.account().held() == 8_KiB; });
  narrow.device->release();
  CHECK(first.wait(Deadline(60s)));
  CHECK(second.wait(Deadline(60s)));
  CHECK(z == std::vector<float>(values_each, 12.0f));
  CHECK(narrow.account().held() == 4_KiB);  // the replica stays
}

TEST_CASE("a job that its waiting thread ran, and that waits for memory then, starts once after its stage",
          "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  std::promise<void> opens[2];
  std::atomic<int> stopped{0};
  b->set_script([&](Step step) -> std::optional<Error> {
    if (step == Step::submit) opens[stopped++].get_future().wait();
    return std::nullopt;
  });
  test::StopAt stage;
  test::Machine machine({a, b}, {.concurrent_jobs = 1}, 2);
  const auto metrics = [&] { return machine.scheduler.metrics(); };
  std::vector<std::vector<float>> memory(4, std::vector<float>(1, 1.0f));
  std::vector<Ticket> others;
  const auto submit_two = [&](Priority priority, std::string on) {
    for (int i = 0; i < 2; ++i)
      others.push_back(machine.scheduler.submit(test::host_scale()(memory[others.size()], 2.0f),
                                                {.priority = priority, .on = on}));
  };
  submit_two(Priority::normal, "vulkan:0");
  await([&] { return b->count(Step::submit) == 2; });

  // Every worker is stopped: the thread that waits runs the job, without taking it out of its
  // queue.
  a->fail_at(Step::create_buffer, Errc::out_of_memory);
  const auto x = machine.array(std::vector<float>(4, 3.0f));
  std::vector<float> y(4);
  Ticket job = machine.scheduler.submit(test::copy()(x, y), {.on = "cuda:0"});
  auto waits = std::async(std::launch::async, [&] { return job.wait().has_value(); });
  await([&] { return metrics().memory_waits == 1; });

  // One worker runs two jobs of higher priority, which take the lanes and a buffer each, and then
  // stages the job.
  a->hold();
  a->set_script(stage.script(Step::create_buffer, 3));
  submit_two(Priority::high, "cuda:0");
  opens[0].set_value();
  stage.await();
  CHECK(metrics().queued == 1);
  opens[1].set_value();
  a->release();  // the lanes are free: the job starts when it is staged
  for (Ticket& one : others) CHECK(one.wait(Deadline(60s)));
  await([&] { return metrics().queued != 1; });
  CHECK(metrics().queued == 0);
  CHECK(metrics().running == 1);
  stage.open();
  CHECK(waits.get());
  CHECK(y == std::vector<float>(4, 3.0f));
  check_counts(metrics());
  CHECK(metrics().queued + metrics().running == 0);
}
