// float32: eight results of each pair of adjacent numbers in [0.5, 2).
__device__ float number(unsigned word) { return __uint_as_float(0x3f000000u | (word & 0x00ffffffu)); }

extern "C" __global__ void __launch_bounds__(64)
    wye_floats(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float p = number(x[i]), q = number(x[(i + 1) % n]);
  y[8 * i + 0] = __float_as_uint(p + q);
  y[8 * i + 1] = __float_as_uint(p - q);
  y[8 * i + 2] = __float_as_uint(p * q);
  y[8 * i + 3] = __float_as_uint(p / q);
  y[8 * i + 4] = __float_as_uint(sqrtf(p));
  y[8 * i + 5] = __float_as_uint(exp2f(p));
  y[8 * i + 6] = __float_as_uint(log2f(p));
  y[8 * i + 7] = unsigned(floorf(p * 1024.0f)) + (p < q ? 65536u : 0u);
}
