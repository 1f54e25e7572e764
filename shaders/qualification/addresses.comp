#version 460
// Buffers by their addresses, which are parameters.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer From { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer To { uint at[]; };
struct FromSpan {
  From data;
  uvec2 size;
};
struct ToSpan {
  To data;
  uvec2 size;
};
layout(push_constant) uniform Arguments {
  FromSpan x;
  ToSpan y;
  uint n;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < n) y.data.at[n - 1 - i] = x.data.at[i] + x.size.x + 3 * y.size.x;
}
