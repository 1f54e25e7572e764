// Your own kernel: one name, one list of parameters, a source for each kind of device.
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

int main() {
  using namespace std::chrono_literals;

  // The parameter list is the schema. A source that disagrees is an error; a host function that
  // disagrees does not compile.
  const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make({
      .name = "scale",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 256) in;
                      layout(set = 0, binding = 0) buffer X { float x[]; };
                      layout(push_constant) uniform P { float s; };
                      void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= s; })"},
                  wye::CudaCpp{.text = R"(extern "C" __global__ void scale(wye_span<float> x, float s) {
                      unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < x.size) x[i] *= s; })"},
                  wye::host([](wye::Range range, std::span<float> x, float s) {
                    for (auto i : range) x[i] *= s;
                  })},
  });
  if (!scale) return std::puts(scale.error().describe().c_str()), 1;

  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // A build is a job. Submitted early, it spares the first run the wait for the compiler.
  auto build = runtime->submit(wye::Job::build(*scale), {.priority = wye::Priority::low, .time_limit = 30s});

  std::vector<float> x(100'000, 3.0f);
  auto ticket = runtime->submit((*scale)(x, 2.0f), {.priority = wye::Priority::high, .start_by = 5s});
  auto done = ticket.wait();
  if (!done) return std::puts(done.error().describe().c_str()), 1;

  auto built = build.wait();
  if (!built) return std::puts(built.error().describe().c_str()), 1;

  std::printf("x[0] = %g, on %s; made ready for %s\n", x[0], done->device().name.c_str(),
              built->device().name.c_str());
  return x.front() == 6.0f && x.back() == 6.0f ? 0 : 1;
}
