#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

#include <vector>

// Opens a runtime, uses it and closes it: 0 where everything went well.
extern "C" __attribute__((visibility("default"))) int use_wye() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return 1;
  std::vector<float> x(100'000, 1.0f);
  std::vector<float> y(100'000, 2.0f);
  if (!runtime->submit(wye::workloads::axpy(3.0f, x, y)).wait()) return 2;
  if (!runtime->submit(wye::workloads::axpy(3.0f, x, y), {.on = "cpu:0"}).wait()) return 3;
  return y.back() == 8.0f ? 0 : 4;
}
