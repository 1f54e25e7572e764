// float32 atomics: the sum of small whole numbers, which is exact in any order.
extern "C" __global__ void __launch_bounds__(64)
    wye_atomics_float32(wye_span<const unsigned> x, wye_span<float> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&y[0], float(x[i] & 1023));
}
