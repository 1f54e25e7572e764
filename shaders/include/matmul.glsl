// c = a b over one stretch of the inner dimension; with ADD, c += a b. A workgroup makes 64 x 64 elements of c, an
// invocation 4 x 4 that lie 16 apart, in registers: no shared memory, which costs lavapipe ten times more than it saves,
// and neighbours still load neighbours.
#include "span.glsl"
#include "flat.glsl"

struct Product {
  uint rows;  // of c
  uint columns;
  uint inner;
  uint first;  // the stretch: [first, last)
  uint last;
  uint transposed;  // whether b is given as columns x inner
};

layout(push_constant) uniform Arguments {
  ConstFloatSpan a;
  ConstFloatSpan b;
  FloatSpan c;
  Product shape;
};

// Tiles are numbered in blocks of 4 x 4, which are near each other in caches and what the host works on.
uvec2 tile_at(uint number) {
  const uint block = number >> 4;
  const uint across = (shape.columns + 255) / 256;
  return uvec2(block % across, block / across) * 4 + uvec2(number & 3, number >> 2 & 3);
}

ConstFloats a_row(uint row) {
  return ConstFloats(element(uvec2(a.data), plus(product(row, shape.inner), uvec2(shape.first, 0))));
}

ConstFloats b_column(uint column) {
  const uvec2 start = shape.transposed != 0 ? plus(product(column, shape.inner), uvec2(shape.first, 0))
                                            : plus(product(shape.first, shape.columns), uvec2(column, 0));
  return ConstFloats(element(uvec2(b.data), start));
}

void write_row(uint row, uint column, vec4 values) {
  if (row >= shape.rows) return;
  Floats to = Floats(element(uvec2(c.data), product(row, shape.columns)));
  for (uint i = 0; i < 4; ++i) {
    const uint at = column + 16 * i;
    if (at >= shape.columns) return;
#ifdef ADD
    to.at[at] += values[i];
#else
    to.at[at] = values[i];
#endif
  }
}

void main() {
  const uvec2 tile = tile_at(flat_unit(8)) * 64;
  const uint column = tile.x + (gl_LocalInvocationID.x & 15);
  const uint row = tile.y + (gl_LocalInvocationID.x >> 4);
  if (row >= shape.rows || column >= shape.columns) return;

  // Beyond the edge the last row and column are computed again, and not written.
  const uvec4 r = min(uvec4(row, row + 16, row + 32, row + 48), shape.rows - 1);
  const uvec4 s = min(uvec4(column, column + 16, column + 32, column + 48), shape.columns - 1);
  ConstFloats a0 = a_row(r.x), a1 = a_row(r.y), a2 = a_row(r.z), a3 = a_row(r.w);
  ConstFloats b0 = b_column(s.x), b1 = b_column(s.y), b2 = b_column(s.z), b3 = b_column(s.w);
  const uint step = shape.transposed != 0 ? 1 : shape.columns;

  vec4 c0 = vec4(0.0), c1 = vec4(0.0), c2 = vec4(0.0), c3 = vec4(0.0);
  for (uint i = 0, k = 0; i < shape.last - shape.first; ++i, k += step) {
    const vec4 right = vec4(b0.at[k], b1.at[k], b2.at[k], b3.at[k]);
    c0 = fma(vec4(a0.at[i]), right, c0);
    c1 = fma(vec4(a1.at[i]), right, c1);
    c2 = fma(vec4(a2.at[i]), right, c2);
    c3 = fma(vec4(a3.at[i]), right, c3);
  }
  write_row(row, column, c0);
  write_row(row + 16, column, c1);
  write_row(row + 32, column, c2);
  write_row(row + 48, column, c3);
}
