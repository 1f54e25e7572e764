// Several steps as one job, with scratch memory that stays on the device.
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

int main() {
  const auto square = wye::Kernel<wye::Read<float>, wye::Write<float>>::make({
      .name = "square",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 64) in;
                      layout(set = 0, binding = 0) readonly buffer X { float x[]; };
                      layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
                      void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = x[i] * x[i]; })"},
                  wye::host([](wye::Range range, std::span<const float> x, std::span<float> y) {
                    for (auto i : range) y[i] = x[i] * x[i];
                  })},
  });
  // Averages each element and its two neighbours.
  const auto smooth = wye::Kernel<wye::Read<float>, wye::Write<float>>::make({
      .name = "smooth",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 64) in;
                      layout(set = 0, binding = 0) readonly buffer X { float x[]; };
                      layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
                      void main() {
                        uint i = gl_GlobalInvocationID.x, last = y.length() - 1;
                        if (i > last) return;
                        y[i] = (x[max(i, 1) - 1] + x[i] + x[min(i + 1, last)]) / 3;
                      })"},
                  wye::host([](wye::Range range, std::span<const float> x, std::span<float> y) {
                    for (auto i : range)
                      y[i] = (x[i == 0 ? 0 : i - 1] + x[i] + x[i + 1 < x.size() ? i + 1 : i]) / 3;
                  })},
  });
  if (!square) return std::puts(square.error().describe().c_str()), 1;
  if (!smooth) return std::puts(smooth.error().describe().c_str()), 1;
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  std::vector<float> x(100'000, 3.0f), y(x.size());
  // Scratch memory is allocated on the job's device while the job runs.
  const wye::Scratch<float> squares(x.size()), once(x.size());
  auto done =
      runtime->run(wye::Job::sequence("smooth_squares", wye::workload_types::vector,
                                      (*square)(x, squares),  // each step reads the results of earlier steps
                                      {(*smooth)(squares, once), (*smooth)(once, y)}));
  if (!done) return std::puts(done.error().describe().c_str()), 1;

  std::printf("y[0] = %g on %s\n", y[0], done->device().id.c_str());
  return y.front() == 9.0f && y.back() == 9.0f ? 0 : 1;
}
