// The choice of a device: preference rows, `on`, and fallback.
#include <wye/wye.hpp>

#include <array>
#include <string>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace wye::literals;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

namespace {

std::string ran_on(const Result<Outcome>& done) { return done ? done->device().id : done.error().describe(); }

constexpr std::array retried_codes{Errc::unsupported, Errc::unavailable, Errc::out_of_memory,
                                   Errc::over_budget, Errc::device_lost, Errc::compile_failed,
                                   Errc::io,          Errc::internal};

/// A pool with a device that cannot be opened.
ContextPool pool_with_missing(const Scripted& device) {
  pool::Inventory inventory;
  AdapterInfo missing;
  missing.id = "cuda:0";
  missing.backend = "cuda";
  missing.name = "a card";
  missing.reason = "The driver is too old.";
  inventory.adapters = {missing, device->info()};
  inventory.devices = {device};
  return wye::detail::Internals::make<ContextPool>(pool::Pool::open({}, std::move(inventory)));
}

}  // namespace

TEST_CASE("a row holds from its size on: one byte less takes the row before it", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  test::Machine machine({a, b}, {.placement = PlacementMode::table,
                                 .preferences = {{workload_types::custom, 0_B, {"cuda"}},
                                                 {workload_types::custom, 100_B, {"vulkan"}}}});
  const auto touches = Kernel<ReadWrite<std::uint8_t>>::make(
                           {.name = "touches", .sources = {host([](Range, std::span<std::uint8_t>) {})}})
                           .value();
  for (const auto& [size, expected] : {std::pair<std::size_t, const char*>{0, "cuda:0"},
                                       {1, "cuda:0"},
                                       {99, "cuda:0"},
                                       {100, "vulkan:0"},
                                       {101, "vulkan:0"}}) {
    std::vector<std::uint8_t> x(size);
    CHECK(ran_on(machine.scheduler.run(touches(x))) == expected);
    CHECK(ran_on(machine.scheduler.run(touches(machine.array(x)))) == expected);
  }
}

TEST_CASE("the size of a job counts each operand once, and neither scratch nor values", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  test::Machine machine({a, b}, {.preferences = {{workload_types::custom, 0_B, {"cuda"}},
                                                 {workload_types::custom, 801_B, {"vulkan"}}}});
  const auto sum =
      Kernel<Read<float>, Read<float>, Write<float>>::make(
          {.name = "sum",
           .sources = {host([](Range, std::span<const float>, std::span<const float>, std::span<float>) {})}})
          .value();
  const auto scale = test::host_scale();
  auto x = machine.array(std::vector<float>(100, 1.0f)), z = machine.array(std::vector<float>(100, 1.0f));
  std::vector<float> y(100, 1.0f);
  const Scratch<float> scratch(1000);
  CHECK(ran_on(machine.scheduler.run(sum(x, x, y))) == "cuda:0");
  CHECK(ran_on(machine.scheduler.run(Job::sequence("steps", workload_types::custom, scale(y, 2.0f),
                                                   {scale(y, 2.0f), scale(scratch, 2.0f)}))) == "cuda:0");
  CHECK(ran_on(machine.scheduler.run(sum(x, z, y))) == "vulkan:0");
}

TEST_CASE("a type of the application has its own rows, or those of custom work", "[scheduler]") {
  constexpr WorkloadType physics{"physics"}, chemistry{"chemistry"};
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  test::Machine machine(
      {a, b}, {.placement = PlacementMode::table,
               .preferences = {{physics, 0_B, {"vulkan"}}, {workload_types::custom, 0_B, {"cuda"}}}});
  std::vector<float> x(1, 1.0f);
  const Call call = test::host_scale()(x, 1.0f);
  CHECK(ran_on(machine.scheduler.run(Job(call, physics))) == "vulkan:0");
  CHECK(ran_on(machine.scheduler.run(Job(call, chemistry))) == "cuda:0");
  CHECK(ran_on(machine.scheduler.run(Job(call, chemistry), {.type = physics})) == "vulkan:0");
  const SchedulerMetrics metrics = machine.scheduler.metrics();
  CHECK(metrics.by_type.at("physics").completed == 2);
  CHECK(metrics.by_type.at("chemistry").completed == 1);
}

TEST_CASE("devices that a row does not name run its jobs if the named ones cannot", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  a->fail_at(Step::create_buffer, Errc::out_of_memory);
  test::Machine machine({b, a}, {.preferences = {{workload_types::custom, 0_B, {"cuda"}}}});
  std::vector<float> x(1, 1.0f);
  CHECK(ran_on(machine.scheduler.run(test::host_scale()(x, 2.0f))) == "vulkan:0");
  CHECK(machine.scheduler.metrics().fallbacks == 1);
}

TEST_CASE("`on` names one device exactly, or any device of a backend in their order", "[scheduler]") {
  const Scripted a = scripted("vulkan:0"), b = scripted("vulkan:1"), c = scripted("cuda:0");
  test::Machine machine({c, a, b}, {.placement = PlacementMode::table});
  std::vector<float> x(1, 1.0f);
  const auto scale = test::host_scale();
  CHECK(ran_on(machine.scheduler.run(scale(x, 1.0f), {.on = "vulkan:1"})) == "vulkan:1");
  CHECK(ran_on(machine.scheduler.run(scale(x, 1.0f), {.on = "vulkan"})) == "vulkan:0");
  a->fail_at(Step::create_buffer, Errc::out_of_memory);
  CHECK(ran_on(machine.scheduler.run(scale(x, 1.0f), {.on = "vulkan"})) == "vulkan:1");
  b->fail_at(Step::create_buffer, Errc::unavailable);
  const int made = c->steps_made();
  CHECK(machine.scheduler.run(scale(x, 1.0f), {.on = "vulkan"}).error() == Errc::out_of_memory);
  CHECK(machine.scheduler.run(scale(x, 1.0f), {.on = "vulkan:1"}).error() == Errc::unavailable);
  CHECK(c->steps_made() == made);
  for (const char* unknown : {"vulkan:2", "vulkan:", "VULKAN", "vulkan:01", " "})
    CHECK(machine.scheduler.run(scale(x, 1.0f), {.on = unknown}).error() == Errc::not_found);
}

TEST_CASE("a job for a device that cannot be opened returns the device's reason", "[scheduler]") {
  const Scripted device = scripted("vulkan:0");
  Scheduler scheduler =
      scheduler::open(pool_with_missing(device), std::make_shared<test::Builder>(Clock::steady())).value();
  std::vector<float> x(1, 1.0f);
  for (const char* on : {"cuda", "cuda:0"}) {
    const auto done = scheduler.run(test::host_scale()(x, 2.0f), {.on = on});
    CHECK(done.error() == Errc::unavailable);
    CHECK(done.error().sentence() == "'" + std::string(on) + "' cannot be used: The driver is too old.");
  }
  auto ticket = scheduler.submit(test::host_scale()(x, 2.0f));
  REQUIRE(ticket.wait());
  const Explanation explanation = ticket.explain();
  REQUIRE(explanation.candidates.size() == 2);
  CHECK(explanation.candidates[1].device == "cuda:0");
  CHECK(explanation.candidates[1].verdict == Candidate::Verdict::refused);
  CHECK(explanation.candidates[1].code == RefusalCode::unusable_adapter);
  CHECK(explanation.candidates[1].reason == "The driver is too old.");
}

TEST_CASE("a job for a lost device fails as device_lost and runs nowhere else", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  test::Machine machine({a, b});
  a->lose();
  std::vector<float> x(1, 1.0f);
  auto ticket = machine.scheduler.submit(test::host_scale()(x, 2.0f), {.on = "cuda:0"});
  CHECK(ticket.wait().error() == Errc::device_lost);
  CHECK(b->steps_made() == 0);
  CHECK(ticket.explain().candidates[0].code == RefusalCode::device_lost);
  REQUIRE(ticket.explain().candidates[0].error);
  CHECK(ticket.explain().candidates[0].error->code() == Errc::device_lost);
}

TEST_CASE("a device that refuses a job is no fallback: it was never tried", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  std::vector<std::string> lines;
  test::Machine machine({a, b}, {.fallback = Fallback::warn, .log = [&](const LogRecord& r) {
                                   if (r.level >= LogLevel::warning) lines.emplace_back(r.text);
                                 }});
  a->lose();
  std::vector<float> x(1, 1.0f);
  CHECK(machine.scheduler.run(test::host_scale()(x, 2.0f), {.fallback = Fallback::forbid}));
  CHECK(machine.scheduler.run(test::host_scale()(x, 2.0f)));
  CHECK(lines.empty());
  CHECK(machine.scheduler.metrics().fallbacks == 0);
}

TEST_CASE("each mode of fallback holds for every code that another device may not have", "[scheduler]") {
  for (const Errc code : retried_codes) {
    for (const Fallback mode : {Fallback::allow, Fallback::warn, Fallback::forbid}) {
      for (const bool by_job : {false, true}) {  // the mode is an option of the job, or of the scheduler
        INFO(name(code) << ", mode " << static_cast<int>(mode));
        const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
        a->fail_at(Step::create_buffer, code);
        std::vector<std::string> lines;
        const Fallback other = mode == Fallback::forbid ? Fallback::allow : Fallback::forbid;
        test::Machine machine({a, b}, {.fallback = by_job ? other : mode, .log = [&](const LogRecord& r) {
                                         if (r.level >= LogLevel::warning) lines.emplace_back(r.text);
                                       }});
        std::vector<float> x(1, 1.0f);
        const auto done = machine.scheduler.run(
            test::host_scale()(x, 2.0f),
            {.fallback = by_job ? std::optional(mode) : std::nullopt, .tag = "frame 7"});
        CHECK(done.has_value() == (mode != Fallback::forbid));
        if (!done) CHECK(done.error() == code);
        CHECK(x[0] == (mode == Fallback::forbid ? 1.0f : 2.0f));
        CHECK((b->steps_made() == 0) == (mode == Fallback::forbid));
        CHECK(machine.scheduler.metrics().fallbacks == (mode == Fallback::forbid ? 0u : 1u));
        const std::vector<std::string> warning{
            "Job 'host_scale' (tag 'frame 7') falls back from 'cuda:0' to 'vulkan:0': The script fails this "
            "step."};
        CHECK(lines == (mode == Fallback::warn ? warning : std::vector<std::string>()));
      }
    }
  }
}

TEST_CASE("a log sink that throws does not fail the job that falls back", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  a->fail_at(Step::submit, Errc::unavailable);
  test::Machine machine({a, b}, {.fallback = Fallback::warn, .log = [](const LogRecord&) { throw 1; }});
  std::vector<float> x(1, 1.0f);
  CHECK(ran_on(machine.scheduler.run(test::host_scale()(x, 2.0f))) == "vulkan:0");
}

TEST_CASE("each scheduler option out of its range is refused", "[scheduler]") {
  const ContextPool pool = test::pool_of({scripted("cuda:0")});
  const ShaderCache cache = ShaderCache::open().value();
  const auto code = [&](SchedulerOptions options) {
    const auto opened = Scheduler::open(pool, cache, std::move(options));
    return opened ? std::optional<Errc>() : std::optional(opened.error().code());
  };
  CHECK(code({.concurrent_jobs = 0}) == Errc::invalid_argument);
  CHECK(code({.concurrent_jobs = 1025}) == Errc::invalid_argument);
  CHECK_FALSE(code({.concurrent_jobs = 1}));
  CHECK_FALSE(code({.concurrent_jobs = 1024}));
  CHECK(code({.job_time_limit = Duration(-1)}) == Errc::invalid_argument);
  CHECK_FALSE(code({.job_time_limit = Duration(1)}));
  CHECK_FALSE(code({.job_time_limit = Duration::max()}));
  CHECK(code({.close_timeout = Duration(-1)}) == Errc::invalid_argument);
  CHECK_FALSE(code({.close_timeout = Duration(0)}));
  CHECK(code({.preferences = {{WorkloadType{""}, 0_B, {"cpu"}}}}) == Errc::invalid_argument);
  CHECK(code({.preferences = {{workload_types::image, 0_B, {"cpu", "abacus"}}}}) == Errc::invalid_argument);
  CHECK_FALSE(code({.preferences = {{workload_types::image, 0_B, {}}}}));
}
