// The kernels of the random programs in tests/scheduler/program_execution.cpp.
extern "C" __global__ void affine(wye_span<unsigned> z, unsigned k) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < z.size) z[i] = z[i] * 3u + k;
}

extern "C" __global__ void combine(wye_span<const unsigned> x, wye_span<const unsigned> y, wye_span<unsigned> z,
                                   unsigned k) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < z.size) z[i] = x[i] + 5u * y[i] + k;
}

extern "C" __global__ void blend(wye_span<const unsigned> x, wye_span<unsigned> z, unsigned k) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < z.size) z[i] = z[i] ^ (x[i] * 7u + k);
}

extern "C" __global__ void shift(wye_span<const unsigned> x, wye_span<unsigned> z, unsigned k) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < z.size) z[i] = x[i] + k;
}
