// Products with cooperative matrices, for GPUs with matrix units. The workgroup copies 32 steps of the inner dimension at a time
// to shared memory: 128 rows of a and 128 columns of b, 20 KiB. It loads the next ones to registers while it multiplies. A
// subgroup computes a region of c: 4 x 2 matrices. If there are more regions than subgroups, it computes several in turn.
#extension GL_EXT_control_flow_attributes : require
#include "cooperative_matrix.glsl"
#include "product.glsl"

const uint side = 128, depth = 32;
const uint rows_of_matrices = 4, columns_of_matrices = 2, matrices = rows_of_matrices * columns_of_matrices;
const uint matrix_size = matrix_rows * matrix_columns, regions = side * side / (matrices * matrix_size);
const uint regions_across = side / (columns_of_matrices * matrix_columns);

// Tiles of pairs, as stored: rows of steps, or steps of rows if the matrix is transposed. Padding of four words avoids bank
// conflicts and keeps matrices aligned to 16 bytes.
const uint steps_stride = depth / 2 + 4, lines_stride = side / 2 + 4;
shared f16vec2 a_tile[side * steps_stride], b_tile[side * steps_stride];
const uint pairs = side * depth / 2 / 256;  // that an invocation copies
// A matrix of each region of c.
shared float c_tile[side * side / matrices];

// Returns the pair and the line of the pair that an invocation copies.
uvec2 place_of(uint i, bool adjacent) {
  const uint word = i * 256 + gl_LocalInvocationID.x, log2 = adjacent ? 4 : 6;
  return uvec2(word & (1u << log2) - 1, word >> log2);
}
uint index_of(uvec2 place, bool adjacent) { return place.y * (adjacent ? steps_stride : lines_stride) + place.x; }

// Returns two adjacent elements of a matrix: of a line from `first` on if steps are adjacent, otherwise of a step. Elements
// outside of the matrix and of the stretch are zero.
uint pair_of(ElementSpan matrix, uvec2 begin, bool adjacent, uint lines, uint first, uint step, uvec2 place) {
  const uvec2 at = uvec2(2 * place.x, place.y) + (adjacent ? uvec2(step, first) : uvec2(first, step));
  const uvec2 end = adjacent ? uvec2(shape.last, lines) : uvec2(lines, shape.last);
  if (at.x >= end.x || at.y >= end.y) return 0;
  const uvec2 row = product(at.y, adjacent ? shape.inner : lines);
  Line line = line_of(uvec2(matrix.data), plus(begin, plus(row, uvec2(at.x, 0))));
  const uint bits = packed_at(line, 0);
  if (at.x + 1 == end.x) return bits & 0xffffu;
  return line.skip == 0 ? bits : bits & 0xffffu | line.words.at[1] << 16;
}

#ifndef ROUNDED
void write_pair(uvec2 row, uint at, vec2 values) {
  Results to = Results(element(uvec2(c.data), row));
  for (uint j = 0; j < 2 && at + j < shape.columns; ++j) write_element(to, row, at + j, values[j]);
}
#endif

void main() {
  const uvec3 tile = first_of_tile((gl_WorkGroupID.y << (flat_width_log2 - 10)) + gl_WorkGroupID.x, 1);
  const uint n = tile.z;
  if (n >= shape.batch || tile.y >= shape.rows || tile.x >= shape.columns) return;  // all invocations of the workgroup

  const bool a_steps = shape.transposed_a == 0, b_steps = shape.transposed_b != 0;  // whether steps are adjacent
  const uvec2 a_begin = times(shape.a_step, n), b_begin = times(shape.b_step, n);
  for (uint before = 0; before < regions; before += gl_NumSubgroups) {
    const uint region = before + gl_SubgroupID;
    const uvec2 first = uvec2(region % regions_across * columns_of_matrices, region / regions_across * rows_of_matrices) *
                        uvec2(matrix_columns, matrix_rows);
    coopmat<float, gl_ScopeSubgroup, matrix_rows, matrix_columns, gl_MatrixUseAccumulator>
        products[matrices];
    [[unroll]] for (uint i = 0; i < matrices; ++i)
      products[i] = coopmat<float, gl_ScopeSubgroup, matrix_rows, matrix_columns, gl_MatrixUseAccumulator>(0.0);

    uint next_a[pairs], next_b[pairs];
    for (uint step = shape.first; step < shape.last; step += depth) {
      if (step == shape.first)
        for (uint i = 0; i < pairs; ++i) {
          next_a[i] = pair_of(a, a_begin, a_steps, shape.rows, tile.y, step, place_of(i, a_steps));
          next_b[i] = pair_of(b, b_begin, b_steps, shape.columns, tile.x, step, place_of(i, b_steps));
        }
      barrier();  // the steps before are multiplied
      for (uint i = 0; i < pairs; ++i) {
        a_tile[index_of(place_of(i, a_steps), a_steps)] = unpackFloat2x16(next_a[i]);
        b_tile[index_of(place_of(i, b_steps), b_steps)] = unpackFloat2x16(next_b[i]);
      }
      barrier();
      if (shape.last - step > depth)
        for (uint i = 0; i < pairs; ++i) {
          next_a[i] = pair_of(a, a_begin, a_steps, shape.rows, tile.y, step + depth, place_of(i, a_steps));
          next_b[i] = pair_of(b, b_begin, b_steps, shape.columns, tile.x, step + depth, place_of(i, b_steps));
        }
      if (region >= regions) continue;  // all invocations of the subgroup
      [[unroll]] for (uint k = 0; k < depth; k += matrix_inner) {
        coopmat<float16_t, gl_ScopeSubgroup, matrix_rows, matrix_inner, gl_MatrixUseA> left[rows_of_matrices];
        [[unroll]] for (uint i = 0; i < rows_of_matrices; ++i) {
          const uint row = first.y + i * matrix_rows;
          if (a_steps)
            coopMatLoad(left[i], a_tile, row * steps_stride + k / 2, steps_stride, gl_CooperativeMatrixLayoutRowMajor);
          else
            coopMatLoad(left[i], a_tile, k * lines_stride + row / 2, lines_stride, gl_CooperativeMatrixLayoutColumnMajor);
        }
        [[unroll]] for (uint j = 0; j < columns_of_matrices; ++j) {
          const uint column = first.x + j * matrix_columns;
          coopmat<float16_t, gl_ScopeSubgroup, matrix_inner, matrix_columns, gl_MatrixUseB> right;
          if (b_steps)
            coopMatLoad(right, b_tile, column * steps_stride + k / 2, steps_stride, gl_CooperativeMatrixLayoutColumnMajor);
          else
            coopMatLoad(right, b_tile, k * lines_stride + column / 2, lines_stride, gl_CooperativeMatrixLayoutRowMajor);
          [[unroll]] for (uint i = 0; i < rows_of_matrices; ++i) {
            const uint at = i * columns_of_matrices + j;
            products[at] = coopMatMulAdd(left[i], right, products[at]);
          }
        }
      }
    }
    if (region >= regions) continue;
    [[unroll]] for (uint at = 0; at < matrices; ++at) {
      coopMatStore(products[at], c_tile, region * matrix_size, matrix_columns, gl_CooperativeMatrixLayoutRowMajor);
      subgroupBarrier();
      for (uint i = 2 * gl_SubgroupInvocationID; i < matrix_size; i += 2 * gl_SubgroupSize) {
        const uint row = tile.y + first.y + at / columns_of_matrices * matrix_rows + i / matrix_columns;
        const uint column = tile.x + first.x + at % columns_of_matrices * matrix_columns + i % matrix_columns;
        if (row < shape.rows)
          write_pair(row_of_c(n, row), column, vec2(c_tile[region * matrix_size + i], c_tile[region * matrix_size + i + 1]));
      }
      subgroupBarrier();  // the matrix is written
    }
  }
}
