// Memory whose elements the library does not know, because the blocks have two members: one text serves integers with and
// without sign, and floats are read as bits.
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Memory { uint first, others[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstMemory { uint first, others[]; };

struct NumberSpan {
  Memory data;
  uvec2 size;
};
struct ConstNumberSpan {
  ConstMemory data;
  uvec2 size;
};
