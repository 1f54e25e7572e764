// Products of matrices: c = a b over the first stretch of the inner dimension, c += a b over others, then the epilogue.
// Elements are floats, or narrow numbers with HALF, BFLOAT16 or INT8, which has no epilogue. With ROUNDED, c and the
// epilogue's numbers have 16 bits too, and `sums` has the floats of the stretches before the last. A workgroup computes
// 64 x 64 elements of c, an invocation 4 x 4 elements, 16 apart; with ROUNDED 4 x 2 pairs, because it writes words.
#include "span.glsl"
#include "flat.glsl"

struct Product {
  uint rows;  // of c
  uint columns;
  uint inner;
  uint first;  // the stretch: [first, last)
  uint last;
  uint transposed_a;  // whether a is given as inner x rows
  uint transposed_b;  // whether b is given as columns x inner
  uint batch;         // matrices
  uint activation;    // of the epilogue
  float scale;
  uvec2 a_step;  // elements between the beginnings of matrices
  uvec2 b_step;
  uvec2 c_step;
};

#include "elements.glsl"

#ifdef INT8
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ints { int at[]; };
#define Results Ints
#define SUM int
#define Sums ivec4
#define ADD_PRODUCT(a, b, c) ((a) * (b) + (c))
#else
#define Results Floats
#define SUM float
#define Sums vec4
#define ADD_PRODUCT(a, b, c) fma(a, b, c)
#endif

#ifdef ROUNDED
#include "words.glsl"
#define ResultSpan WordSpan
#define ExtraSpan ElementSpan
float extra_at(uvec2 address, uvec2 index) { return at(line_of(address, index), 0); }
const uvec4 columns_of_invocation = uvec4(0, 1, 32, 33);
const uint adjacent_columns = 2;
#else
struct ResultSpan {
  Results data;
  uvec2 size;
};
#define ExtraSpan ConstFloatSpan
float extra_at(uvec2 address, uvec2 index) { return ConstFloats(element(address, index)).at[0]; }
const uvec4 columns_of_invocation = uvec4(0, 16, 32, 48);
const uint adjacent_columns = 1;
#endif

layout(push_constant) uniform Arguments {
  ElementSpan a;
  ElementSpan b;
#ifndef INT8
  ExtraSpan bias;      // of the columns, or empty
  ExtraSpan residual;  // as c, or empty
#endif
#ifdef ROUNDED
  ConstFloatSpan sums;  // as c
#endif
  ResultSpan c;
  Product shape;
};

// Returns the stretch of line `i` of a matrix: a row if its elements are adjacent, otherwise one of `lines` columns.
Line stretch_of(ElementSpan matrix, uvec2 begin, uint i, bool adjacent, uint lines) {
  const uvec2 start =
      adjacent ? plus(product(i, shape.inner), uvec2(shape.first, 0)) : plus(product(shape.first, lines), uvec2(i, 0));
  return line_of(uvec2(matrix.data), plus(begin, start));
}
Line a_row(uint n, uint row) { return stretch_of(a, times(shape.a_step, n), row, shape.transposed_a == 0, shape.rows); }
Line b_column(uint n, uint column) {
  return stretch_of(b, times(shape.b_step, n), column, shape.transposed_b != 0, shape.columns);
}

#ifdef INT8
int finished(int sum, uvec2 index, uint column) { return sum; }
#else
#include "epilogue.glsl"
// Returns element `index` of c, which is in `column`.
float finished(float sum, uvec2 index, uint column) {
  if (shape.last != shape.inner) return sum;
  sum *= shape.scale;
  if (bias.size != uvec2(0)) sum += extra_at(uvec2(bias.data), uvec2(column, 0));
  sum = activated(sum, shape.activation);
  if (residual.size != uvec2(0)) sum += extra_at(uvec2(residual.data), index);
  return sum;
}
#endif

uvec2 row_of_c(uint n, uint row) { return plus(times(shape.c_step, n), product(row, shape.columns)); }

#ifdef ROUNDED
// Writes elements `at` and `at` + 1 of a row, as far as it has them.
void write_pair(uvec2 row, uint at, vec2 values) {
  if (at >= shape.columns) return;
  const uint count = min(shape.columns - at, 2);
  const uvec2 first = plus(row, uvec2(at, 0));
  uint bits = 0;
  for (uint j = 0; j < count; ++j) {
    const uvec2 index = plus(first, uvec2(j, 0));
    const float before = shape.first != 0 ? ConstFloats(element(uvec2(sums.data), index)).at[0] : 0.0;
    bits |= narrow(floatBitsToUint(finished(before + values[j], index, at + j))) << (16 * j);
  }
  write_bytes(half_element(uvec2(c.data), first), 2 * count, bits);
}
void write_row(uint n, uint row, uint column, Sums values) {
  if (row >= shape.rows) return;
  write_pair(row_of_c(n, row), column, values.xy);
  write_pair(row_of_c(n, row), column + 32, values.zw);
}
#else
void write_element(Results to, uvec2 row, uint at, SUM value) {
  to.at[at] = finished(shape.first != 0 ? to.at[at] + value : value, plus(row, uvec2(at, 0)), at);
}
void write_row(uint n, uint row, uint column, Sums values) {
  if (row >= shape.rows) return;
  const uvec2 line = row_of_c(n, row);
  Results to = Results(element(uvec2(c.data), line));
  for (uint i = 0; i < 4; ++i) {
    const uint at = column + columns_of_invocation[i];
    if (at >= shape.columns) return;
    write_element(to, line, at, values[i]);
  }
}
#endif

// Returns {column, row, matrix} of the first element of tile `number` of c. The matrix is `shape.batch` or more if there is no
// such tile. Tiles are numbered in blocks of 256 x 256, for locality in caches and because the host computes whole blocks.
// Blocks have 2^side_log2 tiles in each direction and are numbered matrix after matrix.
uvec3 first_of_tile(uint number, uint side_log2) {
  const uint across = (shape.columns + 255) / 256, blocks = across * ((shape.rows + 255) / 256);
  if (blocks == 0) return uvec3(0, 0, shape.batch);
  const uint tiles = number >> 2 * side_log2, mask = (1u << side_log2) - 1;
  const uint n = tiles / blocks, block = tiles % blocks;
  const uvec2 first = uvec2(block % across, block / across) << side_log2;
  return uvec3((first + uvec2(number & mask, number >> side_log2 & mask)) * (256 >> side_log2), n);
}
// Returns the first element of this workgroup's tile of 64 x 64.
uvec3 first_of_tile() { return first_of_tile(flat_unit(8), 2); }
