#version 460
// Products of four rows of x with one row of weights. Lane i of 32 adds the products i, i + 32, ...
#include "quantized.glsl"
#define PARTIAL vec4
vec4 combine(vec4 a, vec4 b) { return a + b; }
#include "team.glsl"

struct QuantizedProduct {
  uint rows;
  uint columns;
  uint inner;
  uint tiles;  // of four rows
};
layout(push_constant) uniform Arguments {
  ConstFloatSpan x;
  ConstNumberSpan weights;
  FloatSpan y;
  QuantizedProduct shape;
  BlockLayout form;
};

ConstFloats row_of_x(uint row) { return ConstFloats(element(uvec2(x.data), product(min(row, shape.rows - 1), shape.inner))); }

void main() {
  const uint unit = flat_unit(5), lane = gl_LocalInvocationID.x & 31u, place = unit >> 8;
  const uint column = place / shape.tiles * 256 + (unit & 255u), row = place % shape.tiles * 4;
  const bool has_unit = column < shape.columns && row < shape.rows;
  vec4 sums = vec4(0.0);
  if (has_unit) {
    ConstFloats x0 = row_of_x(row), x1 = row_of_x(row + 1), x2 = row_of_x(row + 2), x3 = row_of_x(row + 3);
    const uint group = 1u << form.group_log2;
    const uvec2 first = product(column, shape.inner >> form.group_log2);
    for (uint i = lane; i < shape.inner; i += 32) {
      PackedLine block = block_at(uvec2(weights.data), plus(first, uvec2(i >> form.group_log2, 0)), form);
      const float weight = value_at(block, header_of(block, form), i & (group - 1), form);
      sums += weight * vec4(x0.at[i], x1.at[i], x2.at[i], x3.at[i]);
    }
  }
  const vec4 all = team_result(sums, 5);
  if (has_unit && lane < 4 && row + lane < shape.rows)
    Floats(element(uvec2(y.data), plus(product(row + lane, shape.columns), uvec2(column, 0)))).at[0] = all[lane];
}
