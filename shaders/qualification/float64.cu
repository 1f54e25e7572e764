// float64: four results, low word first.
__device__ double number(unsigned low, unsigned high) {
  return __longlong_as_double((long long)(0x3fe00000u | (high & 0x001fffffu)) << 32 | low);
}
__device__ void put(wye_span<unsigned> y, unsigned at, double value) {
  const long long bits = __double_as_longlong(value);
  y[at] = unsigned(bits);
  y[at + 1] = unsigned(bits >> 32);
}

extern "C" __global__ void __launch_bounds__(64)
    wye_float64(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double p = number(x[i], x[(i + 1) % n]), q = number(x[(i + 2) % n], x[i]);
  put(y, 8 * i + 0, p + q);
  put(y, 8 * i + 2, p * q);
  put(y, 8 * i + 4, p / q);
  put(y, 8 * i + 6, sqrt(p));
}
