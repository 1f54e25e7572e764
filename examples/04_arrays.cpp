// Arrays stay on the device that used them last. Reads and writes determine the order of jobs.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/wye.hpp>

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  constexpr std::uint64_t n = 256;
  const std::vector<float> ones(n * n, 1.0f);
  wye::Array<float> a = runtime->array(ones), b = runtime->array(ones);
  wye::Array<float> c = runtime->array<float>(n * n);

  // No fence or barrier: each job starts when its inputs are complete. read() returns the error of
  // a failed job.
  (void)runtime->submit(wye::workloads::normalize(a, n));
  (void)runtime->submit(wye::workloads::matmul(a, b, c));

  auto view =
      c.read();  // waits for the last writer, copies to the host if needed, locks the array while in scope
  if (!view) return std::puts(view.error().describe().c_str()), 1;
  std::printf("c[0] = %g\n", (*view)[0]);  // a row of n equal numbers of length one, times n ones: sqrt(n)
  return (*view)[0] > 15.99f && (*view)[0] < 16.01f ? 0 : 1;
}
