// Blocks of quantized elements. A thread makes one block. Arithmetic has the bits of IEEE 754.
#include "quantized.cuh"

__device__ float at_least(float range) { return fabsf(range) < 7.888609052210118e-31f ? 0.0f : range; }  // 2^-100

extern "C" __global__ void __launch_bounds__(256)
    wye_quantize(wye_span<const float> x, wye_span<unsigned char> blocks, BlockLayout layout) {
  const Size number = flat_thread();
  if (number >= x.size >> layout.group_log2) return;
  const unsigned n = 1u << layout.group_log2;
  const float* const from = x.data + (number << layout.group_log2);
  Byte* to = blocks.data + number * block_bytes(layout);

  const unsigned infinity = 0x7f800000u;
  float largest = 0.0f, low = from[0], high = low;
  unsigned largest_bits = 0;
  for (unsigned i = 0; i < n; ++i) {
    const float v = from[i];
    largest_bits = max(largest_bits, __float_as_uint(v) & 0x7fffffffu);
    if (fabsf(v) > fabsf(largest)) largest = v;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  const float lowest = low < 0.0f ? low : 0.0f, whole_range = (high > 0.0f ? high : 0.0f) - lowest;
  const bool valid =
      largest_bits < infinity && (layout.header == 2 || (__float_as_uint(whole_range) & 0x7fffffffu) < infinity);

  // (v - start) by + shift, rounded towards zero and at most `most`.
  unsigned scale_bits = 0x7e00u, second = 0;
  float start = 0.0f, by = 0.0f, shift = 0.0f;
  const float most = layout.type == int8_ ? 255.0f : 15.0f;
  if (valid) {
    float scale = 0.0f;
    if (layout.type == q4_0) {
      scale = at_least(largest) * -0.125f;
      shift = 8.5f;
    } else if (layout.type == q4_1) {
      scale = __fdiv_rn(at_least(high - low), 15.0f);
      second = half_bits(low);
      start = low;
      shift = 0.5f;
    } else if (layout.type == q8_0) {
      scale = __fdiv_rn(at_least(fabsf(largest)), 127.0f);
    } else {
      scale = __fdiv_rn(at_least(whole_range), most);
      scale = HalfElement::term(HalfElement::Number(half_bits(scale < 65504.0f ? scale : 65504.0f)));
    }
    scale_bits = half_bits(scale);
    if (scale != 0.0f) by = __fdiv_rn(1.0f, scale);
    if (layout.type == int4_ || layout.type == int8_) {
      const float rounded = floorf(__fadd_rn(__fmul_rn(-lowest, by), 0.5f)), zero = rounded < most ? rounded : most;
      second = unsigned(int(zero) - (layout.type == int4_ ? 0 : 128)) & 0xffffu;
      shift = zero + 0.5f;
    }
  }
  write_short(to, scale_bits);
  if (layout.header == 4) write_short(to + 2, second);
  to += layout.header;

  const unsigned halves = layout.bits == 4 ? 2 : 1, bytes = n / halves;
  for (unsigned i = 0; i < bytes; ++i) {
    unsigned byte = 0;
    for (unsigned j = 0; j < halves && valid; ++j) {
      const float scaled = __fmul_rn(from[i + j * bytes] - start, by);
      unsigned integer;
      if (layout.type == q8_0) {
        const float size = fabsf(scaled), whole = floorf(size);
        const int away = int(whole) + (size - whole >= 0.5f ? 1 : 0);
        integer = unsigned(scaled < 0.0f ? -away : away) & 0xffu;
      } else {
        const float moved = floorf(__fadd_rn(scaled, shift));
        integer = unsigned(moved < 0.0f ? 0.0f : moved < most ? moved : most);
        if (layout.type == int8_) integer = (integer + 128) & 0xffu;
      }
      byte |= integer << (4 * j);
    }
    to[i] = Byte(byte);
  }
}
