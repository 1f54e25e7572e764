#pragma once
/// Threads that use a pool and a scheduler at once, while a call of the driver fails.
#include <wye/wye.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace wye::test {

/// y = a x + y, in GLSL, CUDA C++ and on the host.
inline Kernel<Read<float>, ReadWrite<float>, float> axpy() {
  return Kernel<Read<float>, ReadWrite<float>, float>::make(
             {.name = "axpy",
              .sources = {Glsl{.text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform P { float a; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] += a * x[i]; })"},
                          CudaCpp{.text = R"(
extern "C" __global__ void axpy(wye_span<const float> x, wye_span<float> y, float a) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < y.size) y[i] += a * x[i];
})"},
                          host([](Range range, std::span<const float> x, std::span<float> y, float a) {
                            for (std::uint64_t i : range) y[i] += a * x[i];
                          })}})
      .value();
}

struct Use {
  std::atomic<int> completed{0};  ///< jobs and leases
  std::atomic<int> failed{0};
  std::atomic<int> wrong{0};  ///< a result is not the expected one, or a failed job has changed its memory
};

/// Runs jobs and leases on `threads` threads.
inline void use_at_once(ContextPool& pool, Scheduler& scheduler,
                        const Kernel<Read<float>, ReadWrite<float>, float>& axpy, Use& use, int threads = 8) {
  const auto count = [&](bool completed, bool right) {
    ++(completed ? use.completed : use.failed);
    use.wrong += right ? 0 : 1;
  };
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const std::vector<float> x(200 + static_cast<std::size_t>(t), 2.0f);
      for (int n = 0; n < 2; ++n) {
        std::vector<float> y(x.size(), 1.0f);
        const auto done = scheduler.submit(axpy(x, y, 3.0f)).wait();
        const float expected = done ? 7.0f : 1.0f;
        count(done.has_value(), std::all_of(y.begin(), y.end(), [&](float v) { return v == expected; }));
        auto lease = pool.lease({.deadline = Deadline(std::chrono::minutes(1))});
        if (!lease) {
          count(false, true);
          continue;
        }
        std::vector<std::uint32_t> words(100, 0);
        auto buffer = lease->buffer<std::uint32_t>(words.size());
        if (!buffer) {
          count(false, true);
          continue;
        }
        lease->fill(*buffer, 0x01020304);
        lease->download(*buffer, std::span(words));
        const bool completed = lease->wait().has_value();
        count(completed, !completed || std::all_of(words.begin(), words.end(),
                                                   [](std::uint32_t v) { return v == 0x01020304; }));
      }
    });
  for (std::thread& one : all) one.join();
}

}  // namespace wye::test
