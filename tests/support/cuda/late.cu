// The kernels of bench/cuda_bench.cpp that take long. On the stand-in their time is scripted.
extern "C" __global__ void add_in_200us(wye_span<unsigned> x, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
}

extern "C" __global__ void add_in_10ms(wye_span<unsigned> x, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
}
