// Atomics on words of a buffer: five combinations of all words, then a different number for each thread.
extern "C" __global__ void __launch_bounds__(64)
    wye_atomics(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  __shared__ unsigned sum;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (i < n) {
    atomicAdd(&sum, x[i]);
    atomicMax(&y[1], x[i]);
    atomicXor(&y[2], x[i]);
    for (unsigned seen = 0, next = 1; next != seen;) {  // it is 0 before the first one
      next = seen;
      seen = atomicCAS(&y[3], next, next + x[i]);
    }
    y[8 + i] = atomicAdd(&y[0], 1u);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&y[4], sum);
}
