// Builds as jobs.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/internals.hpp"
#include "base/worker.hpp"
#include "latch.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"
#include "support/stop_point.hpp"
#include "support/thread.hpp"
#include "wrapped_program.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// A kernel that takes long to compile: `steps` functions, all inlined.
Kernel<ReadWrite<float>> large_kernel(const std::string& name, int steps) {
  std::string text =
      "#version 450\nlayout(local_size_x = 64) in;\n"
      "layout(set = 0, binding = 0) buffer X { float x[]; };\n";
  std::string calls;
  for (int i = 0; i < steps; ++i) {
    const std::string n = std::to_string(i);
    text += "float f" + n + "(float v) { return sin(v * " + n + ".5) + cos(v + exp(v - " + n + ".0)); }\n";
    calls += "v = f" + n + "(v);\n";
  }
  text += "void main() { uint i = gl_GlobalInvocationID.x; if (i >= x.length()) return; float v = x[i];\n" +
          calls + "x[i] = v; }\n";
  return Kernel<ReadWrite<float>>::make({.name = name, .sources = {Glsl{.text = std::move(text)}}}).value();
}

/// A kernel whose build blocks until it is opened.
class Gated final : public test::WrappedProgram {
 public:
  explicit Gated(const AnyKernel& kernel) : WrappedProgram(kernel) {}
  Result<device::Artefact> build(const device::DeviceBase& device) const override {
    ++begun;
    point.pass();
    ++ended;
    return WrappedProgram::build(device);
  }
  mutable std::atomic<int> begun{0}, ended{0};
  mutable test::StopPoint point{"the build"};
};

struct GatedKernel : AnyKernel {
  explicit GatedKernel(std::shared_ptr<const Gated> gated)
      : AnyKernel(wye::detail::Programs(std::move(gated))) {}
};

bool has_vulkan(const Runtime& runtime) {
  return std::ranges::any_of(runtime.devices(),
                             [](const Device& device) { return device.info().backend == "vulkan"; });
}

TypeMetrics builds(const Runtime& runtime) {
  const auto types = runtime.metrics().jobs.by_type;
  const auto found = types.find("shader-compilation");
  return found == types.end() ? TypeMetrics{} : found->second;
}

}  // namespace

TEST_CASE("a kernel is built as a job on the requested device, and its first use finds it", "[scheduler]") {
  Runtime runtime = Runtime::open({}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  const auto scale = test::scale();
  const auto built = runtime.submit(Job::build(scale), {.time_limit = 1min, .on = "vulkan"}).wait();
  REQUIRE(built);
  CHECK(built->backend() == "vulkan");
  CHECK(built->cache_tier() == CacheTier::built);
  CHECK(runtime.metrics().cache.misses == 1);
  CHECK(builds(runtime).completed == 1);
  CHECK(builds(runtime).build_time > 0ns);
  CHECK(runtime.metrics().pool.leases == 0);  // it took no lane

  std::vector<float> x(100, 2.0f);
  const auto used = runtime.submit(scale(x, 3.0f), {.on = "vulkan"}).wait();
  REQUIRE(used);
  CHECK(used->cache_tier() == CacheTier::memory);
  CHECK(x[99] == 6.0f);
  CHECK(builds(runtime).completed == 1);
  CHECK(runtime.submit(Job::build(scale), {.on = "vulkan"}).wait()->cache_tier() == CacheTier::memory);
  CHECK(runtime.metrics().cache.misses == 1);
}

TEST_CASE("a build over its time limit settles in time, and later jobs use its result", "[scheduler]") {
  Runtime runtime = Runtime::open({}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  const auto gated = std::make_shared<Gated>(test::scale());
  const GatedKernel scale(gated);
  while (gated->begun == 0) {  // a job that did not start in time has built nothing
    const auto late = runtime.submit(Job::build(scale), {.time_limit = 20ms, .on = "vulkan"}).wait();
    REQUIRE_FALSE(late);
    CHECK(late.error() == Errc::timed_out);
  }
  CHECK(gated->ended == 0);
  CHECK(builds(runtime).timed_out >= 1);
  gated->point.open();
  const auto next = runtime.submit(Job::build(scale), {.on = "vulkan"}).wait();
  REQUIRE(next);
  CHECK(gated->begun == 1);  // one build served both
  CHECK(runtime.metrics().cache.misses == 1);
  CHECK(runtime.metrics().cache.failures == 0);
  CHECK(builds(runtime).completed == 1);
}

TEST_CASE("cancelling a build does not fail another job that waits for the same kernel", "[scheduler]") {
  Runtime runtime = Runtime::open({}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  const auto gated = std::make_shared<Gated>(test::scale());
  const GatedKernel scale(gated);
  auto first = runtime.submit(Job::build(scale), {.on = "vulkan"});
  while (gated->begun == 0) std::this_thread::yield();
  auto second = runtime.submit(Job::build(scale), {.on = "vulkan"});
  first.cancel();
  gated->point.open();
  CHECK(second.wait());
  CHECK(first.wait().error() == Errc::cancelled);
  CHECK(gated->begun == 1);
  CHECK(runtime.metrics().cache.misses == 1);

  // One that has not begun builds nothing.
  Runtime narrow = Runtime::open({.scheduler = {.concurrent_jobs = 1}}).value();
  test::Latch latch;
  std::vector<float> x(1);
  auto blocks = narrow.submit(latch.kernel(x));
  latch.await();
  auto queued = narrow.submit(Job::build(test::scale()), {.on = "vulkan"});
  queued.cancel();
  latch.open();
  CHECK(queued.wait().error() == Errc::cancelled);
  CHECK(blocks.wait());
  CHECK(narrow.metrics().cache.misses == 0);  // nothing was built: the latch is a function of the host
  CHECK(builds(narrow).cancelled == 1);
}

TEST_CASE("builds run by priority", "[scheduler]") {
  Runtime runtime = Runtime::open({.scheduler = {.concurrent_jobs = 1}}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  test::Latch latch;
  std::vector<float> x(1);
  auto blocks = runtime.submit(latch.kernel(x));
  latch.await();
  auto low = runtime.submit(Job::build(large_kernel("low", 1)), {.priority = Priority::low, .on = "vulkan"});
  auto high =
      runtime.submit(Job::build(large_kernel("high", 2)), {.priority = Priority::high, .on = "vulkan"});
  std::atomic<int> ended{0};
  std::atomic<int> low_was{0}, high_was{0};
  low.then([&](const Result<Outcome>&) { low_was = ++ended; });
  high.then([&](const Result<Outcome>&) { high_was = ++ended; });
  latch.open();
  // A thread that waits for a job would run it.
  REQUIRE(runtime.scheduler().quiesce());
  CHECK(high_was == 1);
  CHECK(low_was == 2);
}

TEST_CASE("a build that fails returns the reason and is counted", "[scheduler]") {
  Runtime runtime = Runtime::open({}).value();
  const auto broken = Kernel<ReadWrite<float>>::make(
                          {.name = "broken", .sources = {Glsl{.text = "#version 450\nvoid main() { x }"}}})
                          .value();
  const auto failed = runtime.submit(Job::build(broken)).wait();
  REQUIRE_FALSE(failed);
  CHECK(builds(runtime).failed == 1);
  CHECK(builds(runtime).completed == 0);
  if (has_vulkan(runtime)) {
    CHECK(failed.error() == Errc::compile_failed);
    CHECK_FALSE(failed.error().diagnostics().empty());
  }
  const auto nowhere = runtime.submit(Job::build(test::scale()), {.on = "moon:0"}).wait();
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error() == Errc::not_found);
}

TEST_CASE("a runtime joins the threads of its builds when it closes", "[scheduler]") {
  const int threads = base::Worker::alive();
  {
    Runtime runtime = Runtime::open({.pool = {.backends = {"cpu", "vulkan"}}}).value();
    for (int i = 1; i < 4; ++i)
      (void)runtime.submit(Job::build(large_kernel("k" + std::to_string(i), 20 * i)), {.time_limit = 1ms});
  }
  CHECK(base::Worker::alive() == threads);
}
