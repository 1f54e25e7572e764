// 64-bit integers: three results, low word first.
__device__ void put(wye_span<unsigned> y, unsigned at, unsigned long long value) {
  y[at] = unsigned(value);
  y[at + 1] = unsigned(value >> 32);
}

extern "C" __global__ void __launch_bounds__(64)
    wye_int64(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long a = (unsigned long long)(x[i]) << 32 | x[(i + 1) % n],
                           b = (unsigned long long)(x[(i + 2) % n]) | 1ull;
  put(y, 6 * i + 0, a * b + (a >> (x[i] & 63)));
  put(y, 6 * i + 2, a / b);
  put(y, 6 * i + 4, (unsigned long long)((long long)(a) / (long long)(b)));
}
