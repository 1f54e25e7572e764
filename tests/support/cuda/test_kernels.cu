// The test kernels of tests/support/device in CUDA C++.
extern "C" __global__ void add(wye_span<unsigned> x, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
}

extern "C" __global__ void mix(wye_span<const unsigned> from, wye_span<unsigned> to, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to.size) to[i] = to[i] * 3u + from[i] + by;
}

extern "C" __global__ void iota(wye_span<unsigned> to, unsigned first) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to.size) to[i] = first + i;
}

extern "C" __global__ void axpy(wye_span<const float> x, wye_span<float> y, float a) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < y.size) y[i] += a * x[i];
}

extern "C" __global__ void paint(wye_span<unsigned> to, unsigned width, unsigned height, unsigned depth) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                 z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < width && y < height && z < depth) to[(z * height + y) * width + x] = x + 1000u * y + 1000000u * z;
}

// The sum of each block's 64 elements, by a tree in shared memory: it has barriers.
extern "C" __global__ void block_sums(wye_span<const unsigned> from, wye_span<unsigned> to) {
  __shared__ unsigned part[64];
  const unsigned i = blockIdx.x * 64u + threadIdx.x;
  part[threadIdx.x] = i < from.size ? from[i] : 0u;
  for (unsigned half = 32u; half != 0u; half /= 2u) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0u && blockIdx.x < to.size) to[blockIdx.x] = part[0];
}
