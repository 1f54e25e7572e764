// A struct as a parameter: one type for the host, GLSL and CUDA C++, with the same layout in each.
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

// Any trivially copyable type, in the layout of C++. A source with another layout is an error.
struct Spring {
  float stiffness;
  float damping;
  float step;
};

// Position and speed of one weight.
struct Weight {
  float position;
  float speed;
};

int main() {
  const auto swing = wye::Kernel<wye::ReadWrite<Weight>, Spring>::make({
      .name = "swing",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 64) in;
                      struct Weight { float position; float speed; };
                      struct Spring { float stiffness; float damping; float step; };
                      layout(set = 0, binding = 0) buffer Weights { Weight weights[]; };
                      layout(push_constant) uniform P { Spring spring; };
                      void main() {
                        uint i = gl_GlobalInvocationID.x;
                        if (i >= weights.length()) return;
                        Weight w = weights[i];
                        w.speed -= (spring.stiffness * w.position + spring.damping * w.speed) * spring.step;
                        w.position += w.speed * spring.step;
                        weights[i] = w;
                      })"},
                  wye::host([](wye::Range range, std::span<Weight> weights, Spring spring) {
                    for (auto i : range) {
                      Weight& w = weights[i];
                      w.speed -= (spring.stiffness * w.position + spring.damping * w.speed) * spring.step;
                      w.position += w.speed * spring.step;
                    }
                  })},
  });
  if (!swing) return std::puts(swing.error().describe().c_str()), 1;
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  for (const wye::Device& device : runtime->devices()) {
    std::vector<Weight> weights(1000, Weight{1.0f, 0.0f});
    auto done = runtime->run((*swing)(weights, {.stiffness = 4.0f, .damping = 0.5f, .step = 0.5f}),
                             {.on = device.id()});
    if (!done && done.error() == wye::Errc::unsupported) continue;  // the kernel has no CUDA C++
    if (!done) return std::puts(done.error().describe().c_str()), 1;
    const Weight& last = weights.back();
    std::printf("%-8s position %g, speed %g\n", device.id().c_str(), last.position, last.speed);
    if (last.position != 0.0f || last.speed != -2.0f) return 1;
  }
  return 0;
}
