#version 460
// Blocks of quantized elements. An invocation makes one block. Arithmetic has the bits of IEEE 754.
#include "quantized.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstBits { uint at[]; };

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  NumberSpan blocks;
  BlockLayout form;
};

// Returns a / b, rounded to nearest, ties to even. Both and the quotient are positive and at least 2^-126. Division in GLSL
// has an error of 2.5 units.
float quotient(float a, float b) {
  const uint p = floatBitsToUint(a), q = floatBitsToUint(b), divisor = (q & 0x7fffffu) | 0x800000u;
  uint rest = (p & 0x7fffffu) | 0x800000u, result = 0;
  int exponent = int(p >> 23) - int(q >> 23);
  if (rest < divisor) {
    rest <<= 1;
    --exponent;
  }
  for (int i = 0; i < 25; ++i) {
    result <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      result |= 1;
    }
    rest <<= 1;
  }
  const uint up = result & 1u & ((result >> 1 & 1u) | (rest != 0 ? 1u : 0u));
  return uintBitsToFloat((uint(exponent + 126) << 23) + (result >> 1) + up);
}

float at_least(float range) { return abs(range) < 7.888609052210118e-31 ? 0.0 : range; }  // 2^-100

void main() {
  const uvec2 number = flat_item(gl_GlobalInvocationID.x);
  if (!is_less(number, shifted_right(x.size, form.group_log2))) return;
  const uint n = 1u << form.group_log2;
  ConstBits from = ConstBits(element(uvec2(x.data), shifted_left(number, form.group_log2)));
  uvec2 to = plus(uvec2(blocks.data), times(number, block_bytes(form)));

  const uint infinity = 0x7f800000u;
  float largest = 0.0, low = uintBitsToFloat(from.at[0]), high = low;
  uint largest_bits = 0;
  for (uint i = 0; i < n; ++i) {
    const uint bits = from.at[i];
    const float v = uintBitsToFloat(bits);
    largest_bits = max(largest_bits, bits & 0x7fffffffu);
    if (abs(v) > abs(largest)) largest = v;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  precise float whole_range = max(high, 0.0) - min(low, 0.0);
  const bool valid =
      largest_bits < infinity && (form.header == 2 || (floatBitsToUint(whole_range) & 0x7fffffffu) < infinity);

  // (v - start) by + shift, rounded towards zero and at most `most`.
  uint scale_bits = 0x7e00u, second = 0;
  float start = 0.0, by = 0.0, shift = 0.0;
  const float most = form.type == int8 ? 255.0 : 15.0;
  if (valid) {
    float scale = 0.0;
    if (form.type == q4_0) {
      scale = at_least(largest) * -0.125;
      if (scale == 0.0) scale = uintBitsToFloat(0x80000000u);
      shift = 8.5;
    } else if (form.type == q4_1) {
      precise float range = high - low;
      range = at_least(range);
      if (range != 0.0) scale = quotient(range, 15.0);
      second = narrow(floatBitsToUint(low));
      start = low;
      shift = 0.5;
    } else if (form.type == q8_0) {
      const float size = at_least(abs(largest));
      if (size != 0.0) scale = quotient(size, 127.0);
    } else {
      const float range = at_least(whole_range);
      if (range != 0.0) scale = half_value(narrow(floatBitsToUint(min(quotient(range, most), 65504.0))));
    }
    scale_bits = narrow(floatBitsToUint(scale));
    if (scale != 0.0) {
      by = quotient(1.0, abs(scale));
      if (scale < 0.0) by = -by;
    }
    if (form.type == int4 || form.type == int8) {
      precise float scaled = -min(low, 0.0) * by;
      precise float rounded = scaled + 0.5;
      const float zero = min(floor(rounded), most);
      second = uint(int(zero) - (form.type == int4 ? 0 : 128)) & 0xffffu;
      shift = zero + 0.5;
    }
  }
  write_bytes(to, 2, scale_bits);
  if (form.header == 4) write_bytes(plus(to, uvec2(2, 0)), 2, second);
  to = plus(to, uvec2(form.header, 0));

  // Four bytes at a time.
  const uint halves = form.bits == 4 ? 2 : 1, bytes = n / halves;
  for (uint i = 0; i < bytes; i += 4) {
    uint word = 0;
    for (uint j = 0; j < 4 * halves && valid; ++j) {
      const uint at = i + (j & 3u) + (j >> 2) * bytes;
      const float v = uintBitsToFloat(from.at[at]);
      precise float difference = v - start;
      precise float scaled = difference * by;
      uint integer;
      if (form.type == q8_0) {
        const float size = abs(scaled), whole = floor(size);
        const int away = int(whole) + (size - whole >= 0.5 ? 1 : 0);
        integer = uint(scaled < 0.0 ? -away : away) & 0xffu;
      } else {
        precise float moved = scaled + shift;
        integer = uint(clamp(floor(moved), 0.0, most));
        if (form.type == int8) integer = (integer + 128) & 0xffu;
      }
      word |= integer << ((j & 3u) * 8 + (j >> 2) * 4);
    }
    write_bytes(plus(to, uvec2(i, 0)), 4, word);
  }
}
