// Products of four rows of x with one row of weights. Lane i of 32 adds the products i, i + 32, ..., or with INT8_X, where x is
// blocks q8_0, the products of the blocks i, i + 32, ... of x, which are sums of integers.
#include "quantized.glsl"
#define PARTIAL vec4
vec4 combine(vec4 a, vec4 b) { return a + b; }
#include "team.glsl"

#ifdef INT8_X
#define XSpan ConstNumberSpan
#else
#define XSpan ConstFloatSpan
#endif

struct QuantizedProduct {
  uint rows;
  uint columns;
  uint inner;
  uint tiles;  // of four rows
};
layout(push_constant) uniform Arguments {
  XSpan x;
  ConstNumberSpan weights;
  FloatSpan y;
  QuantizedProduct shape;
  BlockLayout form;
};

// Returns the block of weights that has element i of a row, which begins with block `first`.
PackedLine weights_at(uvec2 first, uint i) {
  return block_at(uvec2(weights.data), plus(first, uvec2(i >> form.group_log2, 0)), form);
}

#ifdef INT8_X
const BlockLayout form_of_x = BlockLayout(q8_0, 5, 8, 2);
PackedLine block_of_x(uint row, uint i) {
  const uvec2 first = product(min(row, shape.rows - 1), shape.inner >> 5);
  return block_at(uvec2(x.data), plus(first, uvec2(i, 0)), form_of_x);
}

vec4 sums_of_lane(uint lane, uint row, uvec2 first) {
  vec4 sums = vec4(0.0);
  for (uint k = lane; k < shape.inner >> 5; k += 32) {
    PackedLine block = weights_at(first, k << 5);
    const BlockHeader header = header_of(block, form);
    PackedLine x0 = block_of_x(row, k), x1 = block_of_x(row + 1, k);
    PackedLine x2 = block_of_x(row + 2, k), x3 = block_of_x(row + 3, k);
    const uint from = (k << 5) & ((1u << form.group_log2) - 1);
    ivec4 products = ivec4(0), plain = ivec4(0);
    for (uint i = 0; i < 32; ++i) {
      const ivec4 v = ivec4(integer_at(x0, i, form_of_x), integer_at(x1, i, form_of_x), integer_at(x2, i, form_of_x),
                            integer_at(x3, i, form_of_x));
      products += integer_at(block, from + i, form) * v;
      plain += v;
    }
    const vec4 scales = vec4(half_value(short_at(x0, 0)), half_value(short_at(x1, 0)), half_value(short_at(x2, 0)),
                             half_value(short_at(x3, 0)));
    vec4 values = header.scale * vec4(products - int(header.zero) * plain);
    if (form.type == q4_1) values += header.minimum * vec4(plain);
    sums += scales * values;
  }
  return sums;
}
#else
ConstFloats row_of_x(uint row) { return ConstFloats(element(uvec2(x.data), product(min(row, shape.rows - 1), shape.inner))); }

vec4 sums_of_lane(uint lane, uint row, uvec2 first) {
  vec4 sums = vec4(0.0);
  ConstFloats x0 = row_of_x(row), x1 = row_of_x(row + 1), x2 = row_of_x(row + 2), x3 = row_of_x(row + 3);
  const uint group = 1u << form.group_log2;
  for (uint i = lane; i < shape.inner; i += 32) {
    PackedLine block = weights_at(first, i);
    const float weight = value_at(block, header_of(block, form), i & (group - 1), form);
    sums += weight * vec4(x0.at[i], x1.at[i], x2.at[i], x3.at[i]);
  }
  return sums;
}
#endif

void main() {
  const uint unit = flat_unit(5), lane = gl_LocalInvocationID.x & 31u, place = unit >> 8;
  const uint column = place / shape.tiles * 256 + (unit & 255u), row = place % shape.tiles * 4;
  const bool has_unit = column < shape.columns && row < shape.rows;
  vec4 sums = vec4(0.0);
  if (has_unit) sums = sums_of_lane(lane, row, product(column, shape.inner >> form.group_log2));
  const vec4 all = team_result(sums, 5);
  if (has_unit && lane < 4 && row + lane < shape.rows)
    Floats(element(uvec2(y.data), plus(product(row + lane, shape.columns), uvec2(column, 0)))).at[0] = all[lane];
}
