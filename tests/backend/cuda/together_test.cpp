// One process with CUDA (on the stand-in), Vulkan and the CPU: each job goes to the backend of the
// table, and falls back to the next one if that fails.
#include <wye/wye.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/rig.hpp"
#include "support/skip.hpp"
#include "test_kernels_cu.hpp"

namespace wye::test {
namespace {

constexpr char add_comp[] = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) buffer X { uint x[]; };
layout(push_constant) uniform P { uint by; };
void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] += by; })";

using Add = Kernel<ReadWrite<Word>, Word>;

/// With a source for the CPU, or for GPUs only: a Vulkan device that is the CPU in disguise comes
/// after the CPU itself.
Add add(bool for_cpu) {
  std::vector<Add::Source> sources{CudaCpp{.text = test_kernels_cu, .workgroup = Extent3{64}},
                                   Glsl{add_comp}};
  if (for_cpu)
    sources.push_back(host([](Range r, std::span<Word> x, Word by) {
      for (auto i : r) x[i] += by;
    }));
  return good(Add::make({.name = "add", .sources = std::move(sources)}));
}

RuntimeOptions options(std::vector<std::string> backends) {
  RuntimeOptions all;
  all.pool.backends = std::move(backends);
  all.pool.cuda_driver = WYE_STAND_IN_CUDA;
  all.qualification = Qualification::never;  // calls are counted
  all.scheduler.preferences = {{workload_types::vector, Bytes{}, {"cuda", "vulkan", "cpu"}},
                               {workload_types::image, Bytes{}, {"vulkan", "cuda", "cpu"}}};
  return all;
}

}  // namespace

TEST_CASE("a job of the runtime runs on CUDA, and the ticket names it", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  {
    Runtime runtime = good(Runtime::open(options({"cuda", "cpu"})));
    std::vector<Word> x(10'000, 1);
    const auto done = runtime.submit(Job(add(true)(x, 41), workload_types::vector)).wait();
    if (!done) FAIL(done.error().describe());
    CHECK(done->backend() == "cuda");
    CHECK(x == std::vector<Word>(10'000, 42));
    CHECK(stand_in.calls("cuLaunchKernel") == 1);
  }
  CHECK(stand_in.alive().at("contexts") == 0);
  CHECK(stand_in.alive().at("device") == 0);
}

TEST_CASE("equal devices of CUDA share the jobs, and plans are spread over them", "[cuda]") {
  if (!has_kernels()) return;
  constexpr int jobs = 32;
  for (const char* const count : {"2", "4"}) {
    const StandIn stand_in;
    const Setting devices("WYE_STANDIN_DEVICES", count);
    stand_in.latency("kernel/add", std::chrono::milliseconds(5));
    RuntimeOptions chosen = options({"cuda"});
    chosen.pool.lanes_per_device = 1;
    chosen.scheduler.batch_limit = 1;
    Runtime runtime = good(Runtime::open(std::move(chosen)));
    const int of = static_cast<int>(runtime.devices().size());
    CHECK(std::to_string(of) == count);
    const Add kernel = add(false);
    std::vector<std::vector<Word>> values(jobs, std::vector<Word>(100, 1));
    std::vector<Ticket> tickets;
    for (auto& value : values)
      tickets.push_back(runtime.submit(Job(kernel(value, 1), workload_types::vector)));
    std::map<std::string, int> ran_on;
    for (Ticket& ticket : tickets) {
      const auto done = ticket.wait();
      if (!done) FAIL(done.error().describe());
      ++ran_on[done->device().id];
    }
    for (const auto& value : values) CHECK(value == std::vector<Word>(100, 2));
    CHECK(ran_on.size() == static_cast<std::size_t>(of));
    std::map<std::string, int> plans_on;
    std::vector<Plan> plans;
    for (int i = 0; i < 2 * of; ++i) {
      Graph graph;
      graph.add(Job(kernel(values[static_cast<std::size_t>(i)], 1), workload_types::vector));
      plans.push_back(good(graph.compile(runtime)));
      ++plans_on[plans.back().description().steps[0].device];
    }
    CHECK(plans_on.size() == static_cast<std::size_t>(of));
    for (const auto& [device, plans_there] : plans_on) CHECK(plans_there == 2);
    for (Plan& plan : plans) CHECK(plan.run().wait());
  }
}

// Run by tests/with-stand-in-cuda.sh.
TEST_CASE("the driver that the environment names is the one that is opened", "[.][environment]") {
  RuntimeOptions from_environment = good(RuntimeOptions::from_environment());
  from_environment.pool.backends = {"cuda"};
  const Runtime runtime = good(Runtime::open(from_environment));
  REQUIRE(runtime.devices().size() == 1);
  CHECK(runtime.devices()[0].info().name == "wye stand-in");
}

#if WYE_WITH_VULKAN
TEST_CASE("each type of work goes to the backend of its table, in one process", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  Runtime runtime = good(Runtime::open(options({"cuda", "vulkan", "cpu"})));
  const auto devices = runtime.devices();
  if (std::none_of(devices.begin(), devices.end(),
                   [](const Device& d) { return d.info().backend == "vulkan"; })) {
    return skip("there is no Vulkan device");
  }
  std::vector<Word> x(10'000, 1), y(10'000, 1);
  const auto both = add(false), shader = good(Add::make({.name = "add", .sources = {Glsl{add_comp}}}));
  for (int i = 0; i < 10; ++i) {
    auto a = runtime.submit(Job(both(x, 1), workload_types::vector));
    auto b = runtime.submit(Job(shader(y, 2), workload_types::image));
    const auto on_a = a.wait(), on_b = b.wait();
    if (!on_a) FAIL(on_a.error().describe());
    if (!on_b) FAIL(on_b.error().describe());
    CHECK(on_a->backend() == "cuda");
    CHECK(on_b->backend() == "vulkan");
  }
  CHECK(x == std::vector<Word>(10'000, 11));
  CHECK(y == std::vector<Word>(10'000, 21));

  // A launch faults: the device is lost, the job is not, nor any after it.
  stand_in.fail("cuLaunchKernel", 1, 719);
  for (int i = 0; i < 3; ++i) {
    const auto done = runtime.submit(Job(both(x, 1), workload_types::vector)).wait();
    if (!done) FAIL(done.error().describe());
    INFO(done->reason());
    CHECK(done->backend() == "vulkan");
    CHECK(done->reason().find("cuda") != std::string::npos);
  }
  CHECK(x == std::vector<Word>(10'000, 14));
  CHECK(runtime.metrics().jobs.fallbacks >= 1);
}

TEST_CASE("each kernel goes to the backend that has run it in less time, in one process", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  stand_in.latency("kernel/add", std::chrono::milliseconds(50));
  RuntimeOptions chosen = options({"cuda", "vulkan"});
  chosen.pool.lanes_per_device = 1;
  chosen.scheduler.batch_limit = 1;
  chosen.scheduler.preferences = {{workload_types::custom, Bytes{}, {"cuda", "vulkan"}}};
  Runtime runtime = good(Runtime::open(std::move(chosen)));
  if (runtime.devices().size() < 2) return skip("there is no Vulkan device");
  constexpr char slow_iota_comp[] = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) buffer X { uint x[]; };
layout(push_constant) uniform P { uint first; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= x.length()) return;
  uint sum = first;
  for (uint k = 0; k < 20000; ++k) sum = sum * 5 + (k ^ i);
  x[i] = sum == 0 ? i : first + i;
})";
  const auto iota = good(Kernel<Write<Word>, Word>::make(
      {.name = "iota",
       .sources = {CudaCpp{.text = test_kernels_cu, .workgroup = Extent3{64}}, Glsl{slow_iota_comp}}}));
  const Add slow_on_cuda = add(false);
  constexpr int rounds = 20, at_a_time = 4;
  std::vector<std::vector<Word>> x(at_a_time, std::vector<Word>(1000, 1));
  std::vector<Word> y(1000);
  std::string on_x, on_y, reason;
  for (int i = 0; i < rounds; ++i) {
    std::vector<Ticket> tickets;
    for (auto& one : x) tickets.push_back(runtime.submit(slow_on_cuda(one, 1)));  // some wait
    for (Ticket& ticket : tickets) {
      const auto added = ticket.wait();
      if (!added) FAIL(added.error().describe());
      on_x += added->backend() == "cuda" ? 'c' : 'v';
      if (added->backend() == "vulkan") reason = added->reason();
    }
    const auto counted = runtime.submit(iota(y, 7)).wait();
    if (!counted) FAIL(counted.error().describe());
    on_y += counted->backend() == "cuda" ? 'c' : 'v';
  }
  for (const auto& one : x) CHECK(one == std::vector<Word>(1000, 1 + rounds));
  CHECK(y[999] == 1006);
  CHECK(on_x.front() == 'c');  // the order of the table, until times are known
  INFO(on_x << ' ' << on_y);
  CHECK(std::count(on_x.end() - rounds * at_a_time / 2, on_x.end(), 'c') <= 2);  // trials
  CHECK(std::count(on_y.end() - rounds / 2, on_y.end(), 'v') <= 2);
  says(reason, {"'cuda:0' comes before it, but takes longer."});
}
#endif

}  // namespace wye::test
