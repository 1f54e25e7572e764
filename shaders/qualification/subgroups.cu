// Operations of a warp: four words that describe its thread, and four results.
extern "C" __global__ void __launch_bounds__(64)
    wye_subgroups(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  const unsigned all = ~0u, i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize;
  const unsigned word = x[i % n];
  unsigned through = word;  // the sum of the lanes up to this one
  for (unsigned by = 1; by < warpSize; by *= 2) {
    const unsigned below = __shfl_up_sync(all, through, by);
    if (lane >= by) through += below;
  }
  const unsigned sum = __shfl_sync(all, through, warpSize - 1);
  const unsigned odd = __ballot_sync(all, (word & 1) != 0);
  const unsigned other = __shfl_sync(all, word, (lane + 3) % warpSize);
  const int any = __any_sync(all, (word & 7) == 0);
  if (i >= n) return;
  y[8 * i + 0] = warpSize;
  y[8 * i + 1] = lane;
  y[8 * i + 2] = blockIdx.x * 256 + threadIdx.x / warpSize;
  y[8 * i + 3] = sum;
  y[8 * i + 4] = through - word;
  y[8 * i + 5] = unsigned(__popc(odd));
  y[8 * i + 6] = other;
  y[8 * i + 7] = any != 0 ? 1u : 0u;
}
