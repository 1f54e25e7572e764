// Runs every block of README.md and docs/ that is no whole program.
#include "readme/given.hpp"

int main() {
  const auto scale = readme::Scale::make({
      .name = "scale",
      .sources = {wye::Glsl{.text = R"(#version 450
                      layout(local_size_x = 256) in;
                      layout(set = 0, binding = 0) buffer X { float x[]; };
                      layout(push_constant) uniform P { float s; };
                      void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= s; })"},
                  wye::host([](wye::Range range, std::span<float> x, float s) {
                    for (auto i : range) x[i] *= s;
                  })},
  });
  if (!scale) return std::puts(scale.error().describe().c_str()), 1;
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  int failed = 0;
  for (const readme::Block& block : readme::blocks()) {
    std::printf("-- %s\n", block.name);
    std::vector<float> x(64 * 64, 1.0f), y(x.size(), 2.0f);
    if (auto result = block.function(&*runtime, x, y, &*scale); !result) {
      std::puts(result.error().describe().c_str());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}
