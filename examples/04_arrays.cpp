// Data that stays where it is used: order follows from what reads and what writes.
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

  // No fence, no barrier, nobody waits: each job starts when what it reads is there. What fails comes out of read().
  (void)runtime->submit(wye::workloads::normalize(a, n));
  (void)runtime->submit(wye::workloads::matmul(a, b, c));

  auto view = c.read();  // waits for the last writer, moves what is missing, holds it still while in scope
  if (!view) return std::puts(view.error().describe().c_str()), 1;
  std::printf("c[0] = %g\n", (*view)[0]);  // a row of n equal numbers of length one, times n ones: sqrt(n)
  return (*view)[0] > 15.99f && (*view)[0] < 16.01f ? 0 : 1;
}
