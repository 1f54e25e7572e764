// A kernel in Slang: one text for every GPU. Without the Slang compiler, the host function runs,
// and the explanation has the reason.
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>
#include <wye/wye.hpp>

int main() {
  const auto smooth = wye::Kernel<wye::Read<float>, wye::Write<float>, float>::make({
      .name = "smooth",
      .sources = {wye::Slang{.text = R"([shader("compute")] [numthreads(256, 1, 1)]
                      void smooth(uint3 id : SV_DispatchThreadID, uniform StructuredBuffer<float> x,
                                  uniform RWStructuredBuffer<float> y, uniform float weight) {
                        uint count, stride;
                        x.GetDimensions(count, stride);
                        if (id.x >= count) return;
                        float before = x[max(id.x, 1) - 1], after = x[min(id.x + 1, count - 1)];
                        y[id.x] = lerp(x[id.x], 0.5 * (before + after), weight);
                      })"},
                  wye::host([](wye::Range range, std::span<const float> x, std::span<float> y, float weight) {
                    for (auto i : range) {
                      const float before = x[i == 0 ? 0 : i - 1], after = x[i + 1 == x.size() ? i : i + 1];
                      y[i] = std::lerp(x[i], 0.5f * (before + after), weight);
                    }
                  })},
  });
  if (!smooth) return std::puts(smooth.error().describe().c_str()), 1;

  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  std::vector<float> x(100'000), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 2);
  auto ticket = runtime->submit((*smooth)(x, y, 1.0f));
  if (auto done = ticket.wait(); !done) return std::puts(done.error().describe().c_str()), 1;
  std::puts(ticket.explain().text().c_str());
  return y[1] == 0.0f && y[2] == 1.0f ? 0 : 1;
}
