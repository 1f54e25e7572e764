// Which device runs a job, and what a scheduler does when it fails.
#include <wye/wye.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <string>
#include <vector>

#include "rig.hpp"
#include "wrapped_program.hpp"

using namespace wye;
using namespace wye::literals;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;
using Verdict = Candidate::Verdict;

namespace {

constexpr std::array recoverable{Errc::unsupported, Errc::unavailable, Errc::out_of_memory,
                                 Errc::over_budget, Errc::device_lost, Errc::compile_failed,
                                 Errc::io,          Errc::internal};
constexpr std::array final_codes{Errc::invalid_argument, Errc::kernel_failed, Errc::corrupt, Errc::not_found};

std::vector<RefusalCode> codes_of(const Explanation& explanation) {
  std::vector<RefusalCode> codes;
  for (const Candidate& candidate : explanation.candidates) codes.push_back(candidate.code);
  return codes;
}

/// A program that counts the sentences it is asked for. The first `without_memory` times it has no
/// memory to decide.
class Counting final : public test::WrappedProgram {
 public:
  Counting(const AnyKernel& kernel, std::string refused)
      : WrappedProgram(kernel), refused_(std::move(refused)) {}
  bool runs_on(const device::DeviceBase& device) const override {
    if (without_memory-- > 0) throw std::bad_alloc();
    return device.info().id != refused_;
  }
  std::optional<Error> refusal(const device::DeviceBase& device) const override {
    ++sentences;
    if (runs_on(device)) return std::nullopt;
    return Error(Errc::unsupported, "The program refuses this device.");
  }
  bool passes_over(const device::DeviceBase&) const override { return true; }
  std::optional<Error> passed_over(const device::DeviceBase&) const override {
    ++sentences;
    return Error(Errc::unsupported, "A better source is not used.");
  }
  mutable std::atomic<int> sentences{0};
  mutable std::atomic<int> without_memory{0};

 private:
  std::string refused_;
};

}  // namespace

TEST_CASE("a job falls back from a device that fails at any step, for every code that another may not have",
          "[scheduler]") {
  const auto scale = test::host_scale();
  for (const Step step : test::ScriptedDevice::steps) {
    for (const Errc code : recoverable) {
      INFO("step " << static_cast<int>(step) << ", " << name(code));
      const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
      first->fail_at(step, code);
      Scheduler scheduler = test::scheduler_of({first, second});
      std::vector<float> x(10, 1.5f);
      auto ticket = scheduler.submit(scale(x, 2.0f));
      const auto outcome = ticket.wait();
      INFO((outcome ? std::string() : outcome.error().describe()));
      REQUIRE(outcome);
      CHECK(outcome->device().id == "vulkan:0");
      CHECK(x == std::vector<float>(10, 3.0f));
      const Explanation explanation = ticket.explain();
      REQUIRE(explanation.candidates.size() == 2);
      CHECK(explanation.candidates[0].verdict == Verdict::ran);
      CHECK(explanation.candidates[1].verdict == Verdict::failed);
      CHECK(explanation.candidates[1].code == RefusalCode::attempt_failed);
      REQUIRE(explanation.candidates[1].error);
      CHECK(explanation.candidates[1].error->code() == code);
      CHECK(outcome->reason().starts_with("cuda:0 failed: "));
      CHECK(scheduler.metrics().fallbacks == 1);
      CHECK(scheduler.metrics().completed == 1);
      CHECK(first->buffers_alive() == 0);
      CHECK(second->buffers_alive() == 0);
    }
  }
}

TEST_CASE("a job does not fall back from a failure that every device would have", "[scheduler]") {
  const auto scale = test::host_scale();
  for (const Step step : test::ScriptedDevice::steps) {
    for (const Errc code : final_codes) {
      INFO("step " << static_cast<int>(step) << ", " << name(code));
      const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
      first->fail_at(step, code);
      Scheduler scheduler = test::scheduler_of({first, second});
      std::vector<float> x(10, 1.5f);
      const auto outcome = scheduler.run(scale(x, 2.0f));
      REQUIRE_FALSE(outcome);
      CHECK(outcome.error() == code);
      CHECK(second->steps_made() == 0);
      CHECK(x == std::vector<float>(10, 1.5f));
      CHECK(scheduler.metrics().failed == 1);
      CHECK(scheduler.metrics().fallbacks == 0);
    }
  }
}

TEST_CASE("a job that fails on every device answers the first failure and explains all", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0"), c = scripted("cpu:0", AdapterType::cpu);
  a->fail_at(Step::create_executable, Errc::compile_failed);
  b->fail_at(Step::create_buffer, Errc::out_of_memory);
  c->fail_at(Step::wait, Errc::internal);
  Scheduler scheduler = test::scheduler_of({a, b, c});
  std::vector<float> x(10, 1.5f);
  auto ticket = scheduler.submit(test::host_scale()(x, 2.0f));
  const auto outcome = ticket.wait();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error() == Errc::compile_failed);
  const Explanation explanation = ticket.explain();
  REQUIRE(explanation.candidates.size() == 3);
  CHECK(explanation.candidates[0].device == "cuda:0");
  CHECK(explanation.candidates[1].error->code() == Errc::out_of_memory);
  CHECK(explanation.candidates[2].error->code() == Errc::internal);
  for (const Candidate& candidate : explanation.candidates) CHECK(candidate.verdict == Verdict::failed);
  CHECK(x == std::vector<float>(10, 1.5f));
  CHECK(scheduler.metrics().failed == 1);
  CHECK(scheduler.metrics().fallbacks == 0);
}

TEST_CASE("fallback 'warn' writes one line in the log for each device after the first that is tried",
          "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0"), c = scripted("cpu:0", AdapterType::cpu);
  a->fail_at(Step::create_buffer, Errc::out_of_memory);
  b->fail_at(Step::submit, Errc::unavailable);
  const bool last_fails = GENERATE(false, true);
  if (last_fails) c->fail_at(Step::submit, Errc::unavailable);
  for (const Fallback mode : {Fallback::warn, Fallback::allow}) {
    std::vector<std::string> lines;
    Scheduler scheduler = test::scheduler_of({a, b, c}, {.fallback = mode, .log = [&](const LogRecord& r) {
                                                           if (r.level < LogLevel::warning) return;
                                                           CHECK(r.room == "scheduler");
                                                           lines.emplace_back(r.text);
                                                         }});
    std::vector<float> x(10, 1.5f);
    CHECK(scheduler.run(test::host_scale()(x, 2.0f)).has_value() != last_fails);
    CHECK(lines ==
          (mode == Fallback::allow
               ? std::vector<std::string>{}
               : std::vector<std::string>{
                     "Job 'host_scale' falls back from 'cuda:0' to 'vulkan:0': The script fails this step.",
                     "Job 'host_scale' falls back from 'vulkan:0' to 'cpu:0': The script fails this step."}));
  }
}

TEST_CASE("at level debug the log says where each job ran and why, or how it ended", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  std::vector<std::string> lines;
  const auto keep = [&](const LogRecord& record) {
    if (record.level == LogLevel::debug) lines.emplace_back(record.text);
  };
  Scheduler scheduler = test::scheduler_of({a, b}, {.log = keep});
  std::vector<float> x(10, 1.5f);
  const auto run = [&](const JobOptions& options) {
    lines.clear();
    const bool is_done = scheduler.run(test::host_scale()(x, 2.0f), options).has_value();
    REQUIRE(lines.size() == 1);
    return std::pair(is_done, lines.front());
  };
  CHECK(run({.on = "vulkan"}) ==
        std::pair(true, std::string("Job 'host_scale' ran on 'vulkan:0': The job requests 'vulkan'.")));
  a->fail_at(Step::submit, Errc::unavailable);
  CHECK(run({.tag = "frame 7"}) ==
        std::pair(true, std::string("Job 'host_scale' (tag 'frame 7') ran on 'vulkan:0': cuda:0 failed: The "
                                    "script fails this step. 'vulkan:0' was next.")));
  CHECK(run({.on = "cuda:0"}) ==
        std::pair(false,
                  std::string("Job 'host_scale' ended with 'unavailable': The script fails this step.")));
  auto ticket = scheduler.submit(test::host_scale()(x, 2.0f), {.start_by = Deadline(-1s)});
  CHECK(ticket.wait().error() == Errc::timed_out);
  CHECK(lines.back().find("Job 'host_scale' ended with 'timed_out': ") == 0);
}

TEST_CASE("fallback 'forbid' fails the job and does not touch another device", "[scheduler]") {
  const Scripted a = scripted("cuda:0"), b = scripted("vulkan:0");
  a->fail_at(Step::submit, Errc::out_of_memory);
  Scheduler scheduler = test::scheduler_of({a, b});
  std::vector<float> x(10, 1.5f);
  auto ticket = scheduler.submit(test::host_scale()(x, 2.0f), {.fallback = Fallback::forbid});
  const auto outcome = ticket.wait();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error() == Errc::out_of_memory);
  CHECK(outcome.error().describe().find("fallback of job 'host_scale' is forbidden") != std::string::npos);
  CHECK(b->steps_made() == 0);
  CHECK(codes_of(ticket.explain()) ==
        std::vector{RefusalCode::attempt_failed, RefusalCode::fallback_forbidden});
  CHECK(ticket.explain().candidates[1].verdict == Verdict::passed);

  // A refusal is no failure: the next device may run the job.
  Scheduler other = test::scheduler_of({a, b}, {.fallback = Fallback::forbid});
  a->lose();
  CHECK(other.run(test::host_scale()(x, 2.0f))->device().id == "vulkan:0");
}

TEST_CASE("a lost device refuses jobs, and one that is lost during a job hands it on", "[scheduler]") {
  const auto scale = test::host_scale();
  for (const Step step : test::ScriptedDevice::steps) {
    INFO("step " << static_cast<int>(step));
    const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
    first->set_script([&first = *first, step](Step now) -> std::optional<Error> {
      if (now != step) return std::nullopt;
      first.lose();
      return Error(Errc::device_lost, "Device 'cuda:0' was lost.");
    });
    Scheduler scheduler = test::scheduler_of({first, second});
    std::vector<float> x(10, 1.0f);
    CHECK(scheduler.run(scale(x, 2.0f))->device().id == "vulkan:0");
    const int steps_made = first->steps_made();
    auto ticket = scheduler.submit(scale(x, 2.0f));
    REQUIRE(ticket.wait());
    CHECK(first->steps_made() == steps_made);
    CHECK(codes_of(ticket.explain()) == std::vector{RefusalCode::none, RefusalCode::device_lost});
    CHECK(x == std::vector<float>(10, 4.0f));
    second->lose();
    const auto none = scheduler.run(scale(x, 2.0f));
    REQUIRE_FALSE(none);
    CHECK(none.error() == Errc::device_lost);
    CHECK(none.error().sentence().find("cuda:0: Device 'cuda:0' was lost. vulkan:0: ") != std::string::npos);
  }
}

TEST_CASE("an array keeps its contents over a device that fails at any step", "[scheduler]") {
  for (const Step step : test::ScriptedDevice::steps) {
    INFO("step " << static_cast<int>(step));
    const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
    first->fail_at(step, Errc::unavailable);
    // The pool outlives the scheduler for the array's sake.
    ContextPool pool = test::pool_of({first, second});
    Scheduler scheduler =
        scheduler::open(pool, std::make_shared<test::Builder>(Clock::steady()),
                        {.preferences = {{workload_types::custom, 0_B, {"cuda", "vulkan"}}}})
            .value();
    const std::vector<float> values(10, 1.5f);
    const Array<float> x = test::array_in(pool, values);
    REQUIRE(scheduler.run(test::host_scale()(x, 2.0f)));
    REQUIRE(scheduler.run(test::host_scale()(x, 2.0f)));
    const auto read = x.read();
    REQUIRE(read);
    CHECK(std::vector<float>(read->begin(), read->end()) == std::vector<float>(10, 6.0f));
  }
}

TEST_CASE("every device that did not run a job has a code and a sentence", "[scheduler]") {
  const Scripted vulkan = scripted("vulkan:0"), second = scripted("vulkan:1"),
                 emulated = scripted("cuda:0", AdapterType::cpu), cpu = scripted("cpu:0", AdapterType::cpu);
  Scheduler scheduler =
      test::scheduler_of({emulated, vulkan, second, cpu},
                         {.preferences = {{workload_types::custom, 0_B, {"cuda", "vulkan", "cpu"}}}});
  std::vector<float> x(10, 1.0f);
  auto any = scheduler.submit(test::host_scale()(x, 2.0f));
  REQUIRE(any.wait());
  const Explanation explanation = any.explain();
  CHECK(codes_of(explanation) == std::vector{RefusalCode::none, RefusalCode::lower_preference,
                                             RefusalCode::lower_preference, RefusalCode::emulated});
  CHECK(explanation.candidates[0].device == "vulkan:0");
  CHECK(explanation.candidates[1].reason == "'vulkan:0' has the same backend and comes first.");
  CHECK(explanation.candidates[2].reason == "'vulkan:0' comes first for custom work of 0 bytes and more.");
  CHECK(explanation.candidates[3].reason ==
        "it runs on the CPU, so 'vulkan:0' and every other device come first.");

  auto named = scheduler.submit(test::host_scale()(x, 2.0f), {.on = "cpu"});
  CHECK(named.wait()->device().id == "cpu:0");
  CHECK(codes_of(named.explain()) == std::vector{RefusalCode::none, RefusalCode::not_requested,
                                                 RefusalCode::not_requested, RefusalCode::not_requested});

  auto shader = Kernel<ReadWrite<float>>::make(
                    {.name = "shader", .sources = {Glsl{.text = "#version 450\nvoid main() {}"}}})
                    .value();
  auto refused = scheduler.submit(shader(x));
  CHECK(refused.wait().error() == Errc::unsupported);
  CHECK(codes_of(refused.explain()) == std::vector(4, RefusalCode::kernel_unsupported));
  CHECK(refused.explain().candidates[0].reason.starts_with("Kernel 'shader' has no source for"));
}

TEST_CASE("a buffer binds a job to its device", "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  ContextPool pool = test::pool_of({first, second});
  Scheduler scheduler = scheduler::open(pool, std::make_shared<test::Builder>(Clock::steady())).value();
  auto lease = pool.lease({.on = "vulkan:0"}).value();
  auto buffer = lease.buffer<float>(10).value();
  auto ticket = scheduler.submit(test::host_scale()(buffer, 2.0f));
  REQUIRE(ticket.wait());
  const Explanation explanation = ticket.explain();
  CHECK(codes_of(explanation) == std::vector{RefusalCode::none, RefusalCode::foreign_buffer});
  CHECK(explanation.candidates[1].reason == "Argument 1 of 'host_scale' is a buffer of device 'vulkan:0'.");
}

TEST_CASE(
    "a device that could not be considered at submission, without memory, is considered when the job runs",
    "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  Scheduler scheduler = test::scheduler_of({first, second});
  const auto program = std::make_shared<Counting>(test::host_scale(), "cuda:0");
  program->without_memory = 1;
  std::vector<float> x(10, 1.0f);
  Arguments arguments;
  arguments.push_back(wye::detail::Operand::host_span(std::span<float>(x), Access::read_write));
  arguments.push_back(wye::detail::Operand::of_value(2.0f));
  auto ticket = scheduler.submit(Call(std::shared_ptr<const device::Program>(program), std::move(arguments)));
  const auto outcome = ticket.wait();
  REQUIRE(outcome);
  CHECK(outcome->device().id == "vulkan:0");
  CHECK(codes_of(ticket.explain()) == std::vector{RefusalCode::none, RefusalCode::kernel_unsupported});
  CHECK(first->steps_made() == 0);
}

TEST_CASE("a job that completes makes no sentence before a caller asks for one", "[scheduler]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  const auto counting = std::make_shared<Counting>(test::host_scale(), "cuda:0");
  Scheduler scheduler = test::scheduler_of({first, second});
  std::vector<float> x(10, 1.0f);
  Arguments arguments;
  arguments.push_back(Operand::host_span(std::span<float>(x), Access::read_write));
  arguments.push_back(Operand::of_value(2.0f));
  auto ticket = scheduler.submit(Call(wye::detail::Programs(counting), arguments));
  const auto outcome = ticket.wait();
  REQUIRE(outcome);
  CHECK(counting->sentences == 0);
  CHECK(outcome->reason() ==
        "cuda:0 refused: The program refuses this device. 'vulkan' comes next for custom work of 40 bytes. A "
        "better source is not used.");
  CHECK(counting->sentences == 2);
  CHECK(ticket.explain().candidates[1].reason == "The program refuses this device.");
}

TEST_CASE("a device without memory gets that of the kernels that a cache keeps, also without a Runtime",
          "[scheduler]") {
  const Scripted device = scripted("vulkan:0");
  ContextPool pool = test::pool_of({device});
  const ShaderCache cache = ShaderCache::open().value();
  Scheduler scheduler =
      Scheduler::open(pool, cache, {.preferences = {{workload_types::custom, 0_B, {"vulkan"}}}}).value();
  std::vector<float> x(4, 1.0f);
  REQUIRE(scheduler.run(test::host_scale()(x, 2.0f)));
  REQUIRE(cache.contents().size() == 1);
  device->fail_at(Step::create_buffer, Errc::out_of_memory);
  CHECK(Device(device).buffer<float>(4).error() == Errc::out_of_memory);
  CHECK(cache.contents().empty());
  CHECK(cache.metrics().evictions_reclaimed == 1);
}

TEST_CASE("a reason has each sentence once, however many steps it holds for", "[scheduler]") {
  Scheduler scheduler = test::scheduler_of({scripted("cuda:0")});
  std::vector<float> x(10, 1.0f);
  const auto counting = std::make_shared<Counting>(test::host_scale(), "none");
  const auto call = [&] {
    Arguments arguments;
    arguments.push_back(Operand::host_span(std::span<float>(x), Access::read_write));
    arguments.push_back(Operand::of_value(2.0f));
    return Call(wye::detail::Programs(counting), std::move(arguments));
  };
  const auto outcome = scheduler.run(Job::sequence("two", workload_types::custom, call(), {call()}));
  REQUIRE(outcome);
  CHECK(x == std::vector<float>(10, 4.0f));
  CHECK(outcome->reason() == "'cuda:0' is the only device. A better source is not used.");
}
