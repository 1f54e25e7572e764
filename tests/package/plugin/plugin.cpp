#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

#include <vector>

// Opens a runtime on one backend (all: null), runs a workload and a function of this plug-in, and
// closes it. Returns 0 on success.
extern "C" __attribute__((visibility("default"))) int use_wye(const char* backend) {
  wye::RuntimeOptions options;
  if (backend) options.pool.backends = {backend};
  auto runtime = wye::Runtime::open(options);
  if (!runtime) return 1;
  std::vector<float> x(100'000, 1.0f);
  std::vector<float> y(100'000, 2.0f);
  if (!runtime->submit(wye::workloads::axpy(3.0f, x, y)).wait()) return 2;
  if (!runtime->submit(wye::workloads::axpy(3.0f, x, y), {.on = "cpu:0"}).wait()) return 3;
  const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make(
      {.name = "scale", .sources = {wye::host([](wye::Range range, std::span<float> values, float factor) {
                          for (auto i : range) values[i] *= factor;
                        })}});
  if (!scale || !runtime->submit((*scale)(y, 2.0f)).wait()) return 4;
  return y.back() == 16.0f ? 0 : 5;
}
