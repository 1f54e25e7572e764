// c = a b over the first stretch of the inner dimension, c += a b over others. Elements are floats, or narrow
// numbers with HALF, BFLOAT16 or INT8. With ROUNDED, c has 16 bits too, and one stretch has all of the inner
// dimension. A workgroup computes 64 x 64 elements of c, an invocation 4 x 4 elements, 16 apart, in registers;
// with ROUNDED 4 x 2 pairs, because it writes words. It uses no shared memory, which costs lavapipe ten times
// more than it saves. Adjacent invocations load adjacent elements.
#include "span.glsl"
#include "flat.glsl"

struct Product {
  uint rows;  // of c
  uint columns;
  uint inner;
  uint first;  // the stretch: [first, last)
  uint last;
  uint transposed;  // whether b is given as columns x inner
  uint batch;       // matrices
  uint unused;
  uvec2 a_step;  // elements between the beginnings of matrices
  uvec2 b_step;
  uvec2 c_step;
};

#include "elements.glsl"

#ifdef INT8
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ints { int at[]; };
#define Results Ints
#define Sums ivec4
#define ADD_PRODUCT(a, b, c) ((a) * (b) + (c))
#else
#define Results Floats
#define Sums vec4
#define ADD_PRODUCT(a, b, c) fma(a, b, c)
#endif

#ifdef ROUNDED
#include "words.glsl"
#define ResultSpan WordSpan
const uvec4 columns_of_invocation = uvec4(0, 1, 32, 33);
const uint adjacent_columns = 2;
#else
struct ResultSpan {
  Results data;
  uvec2 size;
};
const uvec4 columns_of_invocation = uvec4(0, 16, 32, 48);
const uint adjacent_columns = 1;
#endif

layout(push_constant) uniform Arguments {
  ElementSpan a;
  ElementSpan b;
  ResultSpan c;
  Product shape;
};

Line a_row(uint n, uint row) {
  return line_of(uvec2(a.data), plus(times(shape.a_step, n), plus(product(row, shape.inner), uvec2(shape.first, 0))));
}

Line b_column(uint n, uint column) {
  const uvec2 start = shape.transposed != 0 ? plus(product(column, shape.inner), uvec2(shape.first, 0))
                                            : plus(product(shape.first, shape.columns), uvec2(column, 0));
  return line_of(uvec2(b.data), plus(times(shape.b_step, n), start));
}

#ifdef ROUNDED
void write_row(uint n, uint row, uint column, Sums values) {
  if (row >= shape.rows) return;
  const uvec2 line = plus(times(shape.c_step, n), product(row, shape.columns));
  for (uint i = 0; i < 4; i += 2) {
    const uint at = column + columns_of_invocation[i];
    if (at >= shape.columns) return;
    const uvec2 index = plus(line, uvec2(at, 0));
    write_bytes(half_element(uvec2(c.data), index), shape.columns - at > 1 ? 4 : 2,
                narrow(floatBitsToUint(values[i])) | narrow(floatBitsToUint(values[i + 1])) << 16);
  }
}
#else
void write_row(uint n, uint row, uint column, Sums values) {
  if (row >= shape.rows) return;
  Results to = Results(element(uvec2(c.data), plus(times(shape.c_step, n), product(row, shape.columns))));
  for (uint i = 0; i < 4; ++i) {
    const uint at = column + columns_of_invocation[i];
    if (at >= shape.columns) return;
    if (shape.first != 0)
      to.at[at] += values[i];
    else
      to.at[at] = values[i];
  }
}
#endif

void main() {
  // Tiles are numbered in blocks of 4 x 4, for locality in caches and because the host computes whole blocks.
  // Blocks are numbered matrix after matrix.
  const uint number = flat_unit(8);
  const uint across = (shape.columns + 255) / 256, blocks = across * ((shape.rows + 255) / 256);
  if (blocks == 0) return;
  const uint n = (number >> 4) / blocks, block = (number >> 4) % blocks;
  const uvec2 tile = (uvec2(block % across, block / across) * 4 + uvec2(number & 3, number >> 2 & 3)) * 64;
  const uint column = tile.x + (gl_LocalInvocationID.x & 15) * adjacent_columns;
  const uint row = tile.y + (gl_LocalInvocationID.x >> 4);
  if (n >= shape.batch || row >= shape.rows || column >= shape.columns) return;

  // Elements beyond the edge repeat the last row and column and are not written.
  const uvec4 r = min(uvec4(row, row + 16, row + 32, row + 48), shape.rows - 1);
  const uvec4 s = min(column + columns_of_invocation, shape.columns - 1);
  Line a0 = a_row(n, r.x), a1 = a_row(n, r.y), a2 = a_row(n, r.z), a3 = a_row(n, r.w);
  Line b0 = b_column(n, s.x), b1 = b_column(n, s.y), b2 = b_column(n, s.z), b3 = b_column(n, s.w);
  const uint step = shape.transposed != 0 ? 1 : shape.columns;

  Sums c0 = Sums(0), c1 = Sums(0), c2 = Sums(0), c3 = Sums(0);
  for (uint i = 0, k = 0; i < shape.last - shape.first; ++i, k += step) {
    const Sums right = Sums(at(b0, k), at(b1, k), at(b2, k), at(b3, k));
    c0 = ADD_PRODUCT(Sums(at(a0, i)), right, c0);
    c1 = ADD_PRODUCT(Sums(at(a1, i)), right, c1);
    c2 = ADD_PRODUCT(Sums(at(a2, i)), right, c2);
    c3 = ADD_PRODUCT(Sums(at(a3, i)), right, c3);
  }
  write_row(n, row, column, c0);
  write_row(n, row + 16, column, c1);
  write_row(n, row + 32, column, c2);
  write_row(n, row + 48, column, c3);
}
