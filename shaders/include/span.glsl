// Spans of device memory as the argument block holds them: an address and a number of elements, 16 bytes.
// Kernels need no 64-bit integers: addresses, sizes and indexes beyond 32 bits are pairs {low, high}.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstFloats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstWords { uint at[]; };

struct FloatSpan {
  Floats data;
  uvec2 size;
};
struct ConstFloatSpan {
  ConstFloats data;
  uvec2 size;
};
struct WordSpan {
  Words data;
  uvec2 size;
};
struct ConstWordSpan {
  ConstWords data;
  uvec2 size;
};

uvec2 plus(uvec2 a, uvec2 b) {
  uint carry;
  const uint low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}

uvec2 product(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return uvec2(low, high);
}

uvec2 times(uvec2 step, uint n) { return plus(product(n, step.x), uvec2(0, n * step.y)); }

bool is_less(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }

// Returns the address of the 4-byte element `index` of the memory at `address`.
uvec2 element(uvec2 address, uvec2 index) {
  return plus(address, uvec2(index.x << 2, index.y << 2 | index.x >> 30));
}
