// Reads lines of a matrix. Elements are floats, or narrow numbers with HALF, BFLOAT16 or INT8.
#if defined(HALF) || defined(BFLOAT16) || defined(INT8)
#ifdef INT8
#define PACKED_LOG2 2
#else
#define PACKED_LOG2 1
#endif
#include "packed.glsl"
#define Elements ConstWords
#define Line PackedLine
Line line_of(uvec2 address, uvec2 index) { return packed_line(address, index); }
#else
#define Elements ConstFloats
#define Line ConstFloats
Line line_of(uvec2 address, uvec2 index) { return ConstFloats(element(address, index)); }
#endif

#if defined(INT8)
int at(Line line, uint i) { return bitfieldExtract(int(packed_at(line, i)), 0, 8); }
#elif defined(HALF)
float at(Line line, uint i) { return unpackHalf2x16(packed_at(line, i)).x; }
#elif defined(BFLOAT16)
float at(Line line, uint i) { return uintBitsToFloat(packed_at(line, i) << 16); }
#else
float at(Line line, uint i) { return line.at[i]; }
#endif

struct ElementSpan {
  Elements data;
  uvec2 size;
};
