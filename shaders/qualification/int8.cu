// 8-bit integers.
extern "C" __global__ void __launch_bounds__(64)
    wye_int8(wye_span<const unsigned> x, wye_span<unsigned> y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned char a = (unsigned char)(x[i]), b = (unsigned char)(x[i] >> 8);
  const signed char c = (signed char)(x[i] >> 16), d = (signed char)(x[i] >> 24);
  y[2 * i + 0] = unsigned((unsigned char)(a * b + a)) | unsigned((unsigned char)(a - b)) << 8;
  y[2 * i + 1] = unsigned(int((signed char)(c * d)) & 0xffff) | unsigned(int((signed char)(c >> 2)) & 0xffff) << 16;
}
