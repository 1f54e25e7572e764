// Kernels compiled with the program: their errors are build errors, and the program needs no
// compiler at run time. In CMakeLists.txt, wye_add_kernels(<target> kernels/saxpy.comp) generates
// <kernels/saxpy.hpp>.
#include <cstdio>
#include <kernels/saxpy.hpp>
#include <span>
#include <vector>
#include <wye/wye.hpp>

int main() {
  // The shader defines the parameters: two buffers, of which the second is written, and a number.
  // Additional sources, here a function for the CPU, must agree.
  const auto saxpy =
      kernels::saxpy({wye::host([](wye::Range range, std::span<const float> x, std::span<float> y, float a) {
        for (auto i : range) y[i] += a * x[i];
      })});
  if (!saxpy) return std::puts(saxpy.error().describe().c_str()), 1;

  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  std::vector<float> x(100'000, 1.0f), y(100'000, 2.0f);
  auto done = runtime->submit((*saxpy)(x, y, 3.0f)).wait();
  if (!done) return std::puts(done.error().describe().c_str()), 1;

  std::printf("%s with (%s): y[0] = %g, on %s\n", saxpy->name().c_str(), saxpy->languages().c_str(), y[0],
              done->device().name.c_str());
  return y.front() == 5.0f && y.back() == 5.0f ? 0 : 1;
}
