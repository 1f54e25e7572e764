// Shared memory and barriers: the sum of each block's words, and eight rotations of weighted words.
extern "C" __global__ void __launch_bounds__(64)
    wye_barriers(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  __shared__ unsigned part[64];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, at = threadIdx.x;
  const unsigned word = i < n ? x[i] : 0u;
  unsigned value = word;
  for (unsigned k = 0; k < 8; ++k) {
    part[at] = value;
    __syncthreads();
    value = part[(at + 7) & 63] * 3 + k;
    __syncthreads();
  }
  part[at] = word;
  for (unsigned count = 32; count != 0; count /= 2) {
    __syncthreads();
    if (at < count) part[at] += part[at + count];
  }
  __syncthreads();
  if (i < n) y[i] = value ^ part[0];
}
