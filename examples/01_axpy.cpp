// Runs one job and prints where it ran.
#include <cstdio>
#include <vector>
#include <wye/workloads/axpy.hpp>
#include <wye/wye.hpp>

int main() {
  auto runtime = wye::Runtime::open();  // every usable device; the CPU always is one
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  std::vector<float> x(1 << 20, 1.0f), y(1 << 20, 2.0f);
  auto done = runtime->submit(wye::workloads::axpy(2.0f, x, y)).wait();  // y = 2 x + y, in place
  if (!done) return std::puts(done.error().describe().c_str()), 1;

  std::printf("y[0] = %g on %s (%s)\n", y[0], done->device().name.c_str(), done->reason().c_str());
  return y[0] == 4.0f ? 0 : 1;
}
