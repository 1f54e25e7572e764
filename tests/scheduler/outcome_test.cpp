// Outcomes, explanations, errors and metrics of jobs.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "latch.hpp"
#include "scheduler/core.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/stop_point.hpp"
#include "support/thread.hpp"
#include "wrapped_program.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;

namespace {

/// A program whose build takes half a second of a clock.
class SlowBuild final : public test::WrappedProgram {
 public:
  SlowBuild(const AnyKernel& kernel, ManualClock& clock) : WrappedProgram(kernel), clock_(clock) {}
  Result<device::Artefact> build(const device::DeviceBase& device) const override {
    clock_.advance(500ms);
    return WrappedProgram::build(device);
  }

 private:
  ManualClock& clock_;
};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Runtime one_job_at_a_time() {
  return Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 1}}).value();
}

}  // namespace

TEST_CASE("an outcome has the code of each kernel that ran", "[scheduler]") {
  const KernelCode on_host{"host_scale", "host", "host"};
  Runtime cpu = one_job_at_a_time();
  std::vector<float> x(10, 1.0f);
  CHECK(cpu.run(test::host_scale()(x, 2.0f))->code() == std::vector{on_host});
  Job three = Job::sequence("three", workload_types::custom, test::scale()(x, 2.0f),
                            {test::host_scale()(x, 3.0f), test::host_scale("last")(x, 1.0f)});
  auto ticket = cpu.submit(std::move(three));
  CHECK(ticket.wait()->code() ==
        std::vector<KernelCode>{{"scale", "host", "host"}, on_host, {"last", "host", "host"}});
  CHECK(ticket.explain().code == ticket.wait()->code());
  CHECK(x[0] == 12);
  auto failed = cpu.submit(test::on_host("throws", [](Range, std::span<float>) { throw 1; })(x));
  CHECK_FALSE(failed.wait());
  CHECK(failed.explain().code.empty());

  Runtime all = Runtime::open({}).value();
  if (!test::has_device(all, "vulkan")) return;
  const auto outcome = all.run(test::scale()(x, 2.0f), {.on = "vulkan"});
  REQUIRE(outcome);
  CHECK(outcome->code() == std::vector<KernelCode>{{"scale", "Glsl", "spirv"}});
}

TEST_CASE("the code of a kernel with variants is that of the variant that ran", "[scheduler]") {
  for (const bool measures : {false, true}) {
    Runtime runtime =
        Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.measure_variants = measures}}).value();
    const auto either = fastest_of(test::host_scale("one"), {test::host_scale("two")});
    std::vector<float> x(10, 1.0f);
    for (int i = 0; i < 8; ++i) {
      const auto outcome = runtime.run(either(x, 2.0f));
      REQUIRE(outcome);
      REQUIRE(outcome->code().size() == 1);
      const std::string ran = outcome->code()[0].kernel;
      if (!measures) CHECK(ran == "one");
      for (const VariantChoice& choice : outcome->variants())
        for (const Variant& variant : choice.variants) CHECK(variant.selected == (variant.kernel == ran));
    }
  }
}

TEST_CASE("an outcome has separate times for queue, build and run", "[scheduler]") {
  ManualClock clock;
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}},
                                   .cache = {.disk = 0_B},
                                   .scheduler = {.concurrent_jobs = 1},
                                   .clock = &clock})
                        .value();
  const auto slow = test::on_host("slow", [&](Range, std::span<float>) { clock.advance(2ms); });
  std::vector<float> x(1, 1.0f);
  Arguments arguments;
  arguments.push_back(Operand::host_span(std::span<float>(x), Access::read_write));
  const Call call(wye::detail::Programs(std::make_shared<SlowBuild>(slow, clock)), arguments);
  test::Latch latch;
  std::vector<float> y(1, 1.0f);
  auto blocker = runtime.submit(latch.kernel(y));
  latch.await();
  auto ticket = runtime.submit(call);
  clock.advance(7ms);
  latch.open();
  const auto first = ticket.wait();
  REQUIRE(first);
  CHECK(first->queue_time() == 7ms);
  CHECK(first->build_time() == 500ms);
  CHECK(first->run_time() == 2ms);
  CHECK(first->transfer_time() == 0ms);
  const auto second = runtime.run(call);
  REQUIRE(second);
  CHECK(second->build_time() == 0ms);
  CHECK(second->run_time() == 2ms);
  CHECK(blocker.wait());
  const TypeMetrics custom = runtime.metrics().jobs.by_type.at("custom");
  CHECK(custom.build_time == 500ms);
  CHECK(custom.run_time == 4ms + blocker.wait()->run_time());
}

TEST_CASE("the run time on Vulkan does not contain compiling", "[scheduler]") {
  Runtime runtime = Runtime::open({}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  for (const Device& device : runtime.devices()) {
    if (device.info().backend != "vulkan") continue;
    std::vector<float> x(1'000'000, 1.0f);
    const auto first = runtime.run(test::scale()(x, 2.0f), {.on = device.id()});
    REQUIRE(first);
    CHECK(first->cache_tier() == CacheTier::built);
    CHECK(first->build_time() > 0ns);
    CHECK(first->transfer_time() > 0ns);  // 4 MB there and back
    CHECK(first->bytes_transferred() == Bytes{8'000'000});
    const auto all = first->build_time() + first->run_time() + first->queue_time() + first->transfer_time();
    CHECK(all < 60s);
  }
}

TEST_CASE("a reason names the backends that come first and why they did not run the job", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu", "vulkan"}}}).value();
  const bool emulated = std::ranges::any_of(runtime.devices(), [](const Device& device) {
    return device.info().backend == "vulkan" && device.info().type == AdapterType::cpu;
  });
  if (!emulated || runtime.devices().size() != 2)
    return test::skip("the only Vulkan device is not an emulated one");
  std::vector<float> x(4 << 20, 1.0f);
  auto ticket = runtime.submit(test::scale()(x, 2.0f));
  const auto done = ticket.wait();
  REQUIRE(done);
  CHECK(done->backend() == "cpu");
  CHECK(done->reason() ==
        "'cpu' is next for custom work of 16.0 MiB: 'cuda' has no usable device, 'vulkan:0' runs on the CPU "
        "and comes last.");
  const std::string text = ticket.explain().text();
  CHECK(contains(text,
                 "vulkan:0  passed over: it runs on the CPU, so 'cpu:0' and every other device come first."));
}

TEST_CASE("every candidate that is passed over has a reason", "[scheduler]") {
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu", "null"}},
                                   .scheduler = {.preferences = {{workload_types::vector, 0_B, {"cpu"}},
                                                                 {workload_types::matrix, 0_B, {"null"}}}}})
                        .value();
  std::vector<float> x(100, 1.5f);
  auto ticket = runtime.submit(Job(test::scale()(x, 2.0f), workload_types::vector));
  REQUIRE(ticket.wait());
  CHECK(contains(ticket.explain().text(),
                 "null:0    passed over: 'cpu:0' comes first for vector work of 0 bytes and more."));
  for (const Candidate& candidate : ticket.explain().candidates) CHECK_FALSE(candidate.reason.empty());
}

TEST_CASE("a job that reads a failed array does not say that it failed to write it", "[scheduler]") {
  Runtime runtime = one_job_at_a_time();
  auto x = runtime.array<float>(10), y = runtime.array<float>(10);
  const auto throws =
      test::on_host("throws", [](Range, std::span<float>) { throw std::runtime_error("no"); });
  auto failed = runtime.submit(throws(x));
  auto reader = runtime.submit(test::copy()(x, y));
  const auto read = reader.wait();
  REQUIRE_FALSE(read);
  CHECK(contains(read.error().describe(), "while job 'copy' read an array that has failed"));
  CHECK_FALSE(contains(read.error().describe(), "it had failed to write"));
}

TEST_CASE("the tag of a job is in its explanation and in each of its errors", "[scheduler]") {
  Runtime runtime = one_job_at_a_time();
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  const auto scale = test::host_scale();
  const auto tagged = [](const Result<Outcome>& result) {
    REQUIRE_FALSE(result);
    INFO(result.error().describe());
    CHECK(contains(result.error().describe(), "(tag 'frame 7')"));
  };
  auto fine = runtime.submit(scale(y, 2.0f), {.tag = "frame 7"});
  REQUIRE(fine.wait());
  CHECK(fine.explain().tag == "frame 7");
  CHECK(fine.explain().text().starts_with("job 'host_scale' (tag 'frame 7')\nran on cpu:0 ("));
  const auto glsl_only =
      Kernel<ReadWrite<float>>::make({.name = "glsl_only", .sources = {Glsl{.text = "#version 450\nx"}}})
          .value();
  tagged(runtime.run(glsl_only(y), {.tag = "frame 7"}));
  const auto unbuildable = Kernel<ReadWrite<float>>::make(
                               {.name = "unbuildable", .sources = {Glsl{.text = "#version 450\nnonsense"}}})
                               .value();
  Runtime all = Runtime::open({}).value();
  for (const Device& device : all.devices())
    if (device.info().backend == "vulkan")
      tagged(all.run(unbuildable(y), {.on = device.id(), .tag = "frame 7"}));

  test::Latch latch;
  auto blocker = runtime.submit(latch.kernel(x));
  latch.await();
  auto late = runtime.submit(scale(y, 2.0f), {.start_by = 1ms, .tag = "frame 7"});
  tagged(late.wait());
  auto cancelled = runtime.submit(scale(y, 2.0f), {.tag = "frame 7"});
  cancelled.cancel();
  tagged(cancelled.wait());
  auto patient = runtime.submit(scale(y, 2.0f), {.tag = "frame 7"});
  tagged(patient.wait(1ms));  // the wait times out; the job continues
  test::Thread closer([&] { runtime.close(); });
  closer.await_parked();
  latch.open();
  closer.join();
  tagged(patient.wait());
  tagged(runtime.run(scale(y, 2.0f), {.tag = "frame 7"}));
  CHECK(blocker.wait());
}

TEST_CASE("jobs that time out, are cancelled and fail are counted separately", "[scheduler]") {
  Runtime runtime = one_job_at_a_time();
  std::vector<float> x(1, 1.0f), y(1, 1.0f);
  test::Latch latch;
  auto blocker = runtime.submit(latch.kernel(x));
  latch.await();
  auto late = runtime.submit(test::host_scale()(y, 2.0f), {.start_by = 1ms});
  CHECK(late.wait().error() == Errc::timed_out);
  auto cancelled = runtime.submit(test::host_scale()(y, 2.0f));
  cancelled.cancel();
  latch.open();
  CHECK(blocker.wait());
  const auto throws = test::on_host("throws", [](Range, std::span<float>) { throw 1; });
  CHECK(runtime.run(throws(y)).error() == Errc::kernel_failed);
  const SchedulerMetrics jobs = runtime.metrics().jobs;
  const TypeMetrics custom = jobs.by_type.at("custom");
  CHECK(jobs.timed_out == 1);
  CHECK(jobs.cancelled == 1);
  CHECK(jobs.failed == 1);
  CHECK(jobs.completed == 1);
  CHECK(custom.timed_out == 1);
  CHECK(custom.cancelled == 1);
  CHECK(custom.failed == 1);
  CHECK(jobs.submitted == jobs.completed + jobs.failed + jobs.cancelled + jobs.timed_out);
}

TEST_CASE("host functions count as no cache misses", "[scheduler]") {
  Runtime runtime = one_job_at_a_time();
  std::vector<float> x(1, 1.0f);
  const auto scale = test::host_scale();
  for (int i = 0; i < 3; ++i) REQUIRE(runtime.run(scale(x, 2.0f)));
  CHECK(runtime.metrics().cache.misses == 0);
  CHECK(runtime.metrics().cache.misses_first == 0);
}

TEST_CASE("a job that has started in time is not affected by start_by", "[scheduler]") {
  ManualClock clock;
  Runtime runtime =
      Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 1}, .clock = &clock})
          .value();
  std::vector<float> x(1, 1.0f);
  const auto slow = test::on_host("slow", [&](Range, std::span<float>) { clock.advance(50ms); });
  CHECK(runtime.submit(slow(x), {.start_by = 40ms}).wait());
  CHECK(runtime.run(Job::build(slow), {.start_by = 1min}));
}

TEST_CASE("100,000 jobs that follow each other settle when their runtime closes", "[scheduler][no_tsan]") {
  std::vector<Ticket> tickets;
  {
    Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}},
                                     .scheduler = {.concurrent_jobs = 1, .max_queued = 200'000}})
                          .value();
    auto x = runtime.array<float>(1);
    test::Latch latch;
    const auto scale = test::host_scale();
    auto blocker = runtime.submit(latch.kernel(x));
    latch.await();
    for (int i = 0; i < 100'000; ++i) tickets.push_back(runtime.submit(scale(x, 1.0f)));
    test::Thread closer([&] { runtime.close(); });
    closer.await_parked();
    latch.open();
    closer.join();
  }
  CHECK(std::all_of(tickets.begin(), tickets.end(), [](const Ticket& ticket) { return ticket.ready(); }));
}

TEST_CASE("sequences and leases take calls, with their arguments and grids", "[scheduler]") {
  Runtime runtime = one_job_at_a_time();
  const Device device = runtime.devices()[0];
  const auto scale = test::host_scale();
  const auto executable = runtime.cache().find_or_build(scale, device).value();
  auto lease = runtime.pool().lease().value();
  auto buffer = lease.buffer<float>(8).value();
  std::vector<float> x(8, 1.0f);
  lease.upload(x, buffer);
  Sequence sequence(device);
  sequence.dispatch(executable, scale(buffer, 2.0f));
  sequence.dispatch(executable, scale(buffer, 5.0f).over(4));
  lease.submit(sequence);
  lease.dispatch(executable, scale(buffer, 3.0f));
  lease.download(buffer, x);
  REQUIRE(lease.wait());
  CHECK(x == std::vector<float>{30, 30, 30, 30, 6, 6, 6, 6});
}
