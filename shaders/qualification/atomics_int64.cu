// 64-bit atomics: three combinations of all numbers.
extern "C" __global__ void __launch_bounds__(64)
    wye_atomics_int64(wye_span<const unsigned> x, wye_span<unsigned long long> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long value = (unsigned long long)(x[i]) << 32 | x[(i + 1) % n];
  atomicAdd(&y[0], value);
  atomicMax(&y[1], value);
  atomicXor(&y[2], value);
}
