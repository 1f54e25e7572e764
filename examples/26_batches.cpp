// Many small requests on one GPU: those that wait while it is busy share submissions, and launches.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

constexpr char text[] = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer W { float weights[]; };
layout(set = 0, binding = 1) readonly buffer X { float x[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uint n; };
void main() {
  const uint row = gl_GlobalInvocationID.x, request = gl_GlobalInvocationID.z;
  if (row >= n) return;
  float sum = 0;
  for (uint column = 0; column < n; ++column) sum += weights[row * n + column] * x[request * n + column];
  y[request * n + row] = sum;
})";

}  // namespace

int main() {
  using wye::Read, wye::Write;
  auto runtime = wye::Runtime::open({.pool = {.backends = {"vulkan"}}});
  if (!runtime) {
    std::puts(
        runtime.error().describe().c_str());  // a CPU has no submissions to share; the results are the same
    runtime = wye::Runtime::open();
  }
  if (!runtime) return fail(runtime.error());

  // One layer of a network: y = weights * x. Each request has an x and a y of its own: these are
  // batchable.
  const auto layer = wye::Kernel<Read<float>, Read<float>, Write<float>, std::uint32_t>::make({
      .name = "layer",
      .sources = {wye::Glsl{.text = text},
                  wye::host([](wye::Range range, std::span<const float> weights, std::span<const float> x,
                               std::span<float> y, std::uint32_t n) {
                    for (const std::uint64_t row : range) {
                      y[row] = 0;
                      for (std::uint64_t column = 0; column < n; ++column)
                        y[row] += weights[row * n + column] * x[column];
                    }
                  })},
      .batchable = {1, 2},
  });
  if (!layer) return fail(layer.error());

  constexpr std::uint32_t n = 128, requests = 500;
  std::vector<float> weights(n * n);
  for (std::uint32_t i = 0; i < n * n; ++i) weights[i] = static_cast<float>(i % 7) - 3;
  const wye::Array<float> shared = runtime->array(weights);  // copied to the GPU once
  std::vector<std::vector<float>> x(requests, std::vector<float>(n)), y = x;
  for (std::uint32_t r = 0; r < requests; ++r) x[r][r % n] = 1;  // selects a column

  std::vector<wye::Ticket> tickets;
  for (std::uint32_t r = 0; r < requests; ++r)
    tickets.push_back(runtime->submit((*layer)(shared, x[r], y[r], n), {.tag = "request"}));
  if (auto done = wye::wait_all(tickets); !done) return fail(done.error());

  std::uint32_t launch = 1, wrong = 0;
  for (std::uint32_t r = 0; r < requests; ++r) {
    launch = std::max(launch, tickets[r].wait()->jobs_in_launch());
    for (std::uint32_t row = 0; row < n; ++row) wrong += y[r][row] == weights[row * n + r % n] ? 0u : 1u;
  }
  const auto metrics = runtime->metrics().jobs;
  std::printf("%u requests on %s: %u of them in %u shared submissions, up to %u in one launch\n", requests,
              tickets[0].wait()->device().name.c_str(), static_cast<unsigned>(metrics.batched_jobs),
              static_cast<unsigned>(metrics.batches), launch);
  return wrong == 0 ? 0 : 1;
}
