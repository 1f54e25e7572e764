#include <wye/wye.hpp>

#include <cstdio>
#include <vector>

int main() {
  const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make({
      .name = "scale",
      .sources = {wye::host([](wye::Range range, std::span<float> x, float factor) {
        for (auto i : range) x[i] *= factor;
      })},
  });
  auto runtime = wye::Runtime::open();
  if (!scale || !runtime) return 1;
  std::vector<float> x(1000, 2.0f);
  const auto done = runtime->submit((*scale)(x, 4.0f)).wait();
  if (!done) {
    std::puts(done.error().describe().c_str());
    return 1;
  }
  for (const float value : x) {
    if (value < 8.0f || value > 8.0f) return 2;
  }
  return 0;
}
