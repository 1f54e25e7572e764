// The program of every foreign project: it uses both libraries and depends on nothing of their
// build.
#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

#include <cstdio>
#include <vector>

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) {
    std::puts(runtime.error().describe().c_str());
    return 1;
  }
  std::vector<float> x(1000, 1.0f);
  std::vector<float> y(1000, 2.0f);
  auto done = runtime->submit(wye::workloads::axpy(3.0f, x, y)).wait();
  if (!done) {
    std::puts(done.error().describe().c_str());
    return 1;
  }
  for (const float value : y) {
    if (value < 5.0f || value > 5.0f) return 2;
  }
  std::printf("wye %s: ran on %s\n", wye::to_string(wye::library_version()).c_str(),
              done->device().name.c_str());
  return 0;
}
