// 16-bit integers.
extern "C" __global__ void __launch_bounds__(64)
    wye_int16(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned a = x[i] & 0xffffu, b = x[i] >> 16;  // their product is not that of two int
  const short c = short(x[i]), d = short(x[i] >> 16);
  y[2 * i + 0] = unsigned((unsigned short)(a * b + a)) | unsigned((unsigned short)(a - b)) << 16;
  y[2 * i + 1] = unsigned(int(short(c * d)) & 0xffff) | unsigned(int(short(c >> 3)) & 0xffff) << 16;
}
