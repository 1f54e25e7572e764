// Jobs that share submissions and launches on a real Vulkan device.
#include <wye/wye.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "on_vulkan.hpp"

using namespace wye;

namespace {

/// y[z][i] = x[z][i] * weight[i] + shift.
Kernel<Read<float>, Read<float>, float, Write<float>> weigh() {
  return Kernel<Read<float>, Read<float>, float, Write<float>>::make({.name = "weigh",
                                                                      .sources = {Glsl{.text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer W { float weight[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float shift; };
void main() {
  const uint count = weight.length(), i = gl_GlobalInvocationID.x;
  const uint at = gl_GlobalInvocationID.z * count + i;
  if (i < count) y[at] = x[at] * weight[i] + shift;
})"}},
                                                                      .batchable = {0, 3}})
      .value();
}

}  // namespace

TEST_CASE("batches and launches on Vulkan have the results of single jobs", "[runtime]") {
  if (!test::open_vulkan()) return;
  ManualClock clock;  // jobs take no time by it, so that many share a submission
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan"}}, .clock = &clock}).value();
  constexpr std::size_t jobs = 200;
  std::mt19937 random(6);
  std::uniform_real_distribution<float> number(-1, 1);
  const auto kernel = weigh();
  std::uint32_t most = 0;
  for (const std::size_t count : {1u, 63u, 64u, 1000u}) {
    std::vector<float> weight(count), first(count, 1.0f), out(count);
    for (float& one : weight) one = number(random);
    REQUIRE(runtime.run(kernel(first, weight, 0.5f, out)));
    std::vector<std::vector<float>> x(jobs, std::vector<float>(count)),
        y(jobs, std::vector<float>(count, -9.0f));
    for (auto& row : x)
      for (float& one : row) one = number(random);
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < jobs; ++i)
      tickets.push_back(runtime.submit(kernel(x[i], weight, i % 50 < 40 ? 0.5f : 0.25f, y[i])));
    REQUIRE(wait_all(tickets));
    for (std::size_t i = 0; i < jobs; ++i) {
      most = std::max(most, tickets[i].wait()->jobs_in_launch());
      for (std::size_t j = 0; j < count; ++j) {
        const double right = double{x[i][j]} * double{weight[j]} + (i % 50 < 40 ? 0.5 : 0.25);
        REQUIRE(std::abs(double{y[i][j]} - right) <= 1e-6);
      }
    }
  }
  CHECK(most > 1);
}
