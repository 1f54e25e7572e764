// 32-bit integers: eight results of each word and its successor.
extern "C" __global__ void __launch_bounds__(64)
    wye_integers(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned a = x[i], b = x[(i + 1) % n], shift = b & 31;
  const unsigned divisor = b == 0 ? 1u : b;
  const int half = int(b >> 1) == 0 ? 1 : int(b >> 1);
  y[8 * i + 0] = a * b;
  y[8 * i + 1] = a / divisor;
  y[8 * i + 2] = a % divisor;
  y[8 * i + 3] = unsigned(int(a) / half);
  y[8 * i + 4] = (a << shift) ^ (b >> (a & 31));
  y[8 * i + 5] = unsigned(int(a) >> shift);
  y[8 * i + 6] = unsigned(__popc(a)) + 64u * unsigned(32 - __clz(int(a)));
  y[8 * i + 7] = __umulhi(a, b);
}
