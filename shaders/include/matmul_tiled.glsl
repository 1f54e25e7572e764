// Products with tiles of a and b in shared memory, for GPUs. The workgroup copies 16 steps of the inner dimension at a time:
// 64 rows of a and 64 columns of b, 8.5 KiB. An invocation copies four rows and four columns of one step. It loads them
// to registers while the workgroup adds the products of the steps before. An element of c adds its products in the
// same order as in matmul.glsl.
#include "product.glsl"

const uint depth = 16;
// The numbers of four rows or columns, 16 apart as in c. The column of padding avoids bank conflicts of the stores.
shared Sums a_tile[depth][17], b_tile[depth][17];

// Four rows or columns that an invocation copies.
struct Lines {
  Line x, y, z, w;
};
Sums numbers_at(Lines lines, uint i) { return Sums(at(lines.x, i), at(lines.y, i), at(lines.z, i), at(lines.w, i)); }

Sums c0 = Sums(0), c1 = Sums(0), c2 = Sums(0), c3 = Sums(0);

// Adds the products of a step.
void add_products(uint step, uvec2 invocation) {
  const Sums left = a_tile[step][invocation.y], right = b_tile[step][invocation.x];
  c0 = ADD_PRODUCT(Sums(left.x), right, c0);
  c1 = ADD_PRODUCT(Sums(left.y), right, c1);
  c2 = ADD_PRODUCT(Sums(left.z), right, c2);
  c3 = ADD_PRODUCT(Sums(left.w), right, c3);
}

void main() {
  const uvec3 tile = first_of_tile();
  const uint n = tile.z;
  if (n >= shape.batch || tile.y >= shape.rows || tile.x >= shape.columns) return;  // all invocations of the workgroup

  // Adjacent invocations copy adjacent elements: steps of a row, or rows of a step; the same for columns.
  const uvec2 invocation = uvec2(gl_LocalInvocationID.x & 15, gl_LocalInvocationID.x >> 4);
  const uvec2 from_a = shape.transposed_a != 0 ? invocation.yx : invocation;  // {step, place}
  const uvec2 from_b = shape.transposed_b != 0 ? invocation : invocation.yx;
  // Elements beyond the edge repeat the last row and column and are not written. Steps beyond the end repeat the last
  // step and are not added.
  const uvec4 r = min(tile.y + from_a.y + uvec4(0, 16, 32, 48), shape.rows - 1);
  const uvec4 s = min(tile.x + from_b.y * adjacent_columns + columns_of_invocation, shape.columns - 1);
  Lines a_rows = Lines(a_row(n, r.x), a_row(n, r.y), a_row(n, r.z), a_row(n, r.w));
  Lines b_columns = Lines(b_column(n, s.x), b_column(n, s.y), b_column(n, s.z), b_column(n, s.w));
  const uint a_step = shape.transposed_a != 0 ? shape.rows : 1, b_step = shape.transposed_b != 0 ? 1 : shape.columns;

  const uint steps = shape.last - shape.first;
  Sums next_a = Sums(0), next_b = Sums(0);
  if (steps != 0) {
    next_a = numbers_at(a_rows, min(from_a.x, steps - 1) * a_step);
    next_b = numbers_at(b_columns, min(from_b.x, steps - 1) * b_step);
  }
  for (uint first = 0; first < steps; first += depth) {
    barrier();  // the products of the steps before are added
    a_tile[from_a.x][from_a.y] = next_a;
    b_tile[from_b.x][from_b.y] = next_b;
    barrier();
    const uint count = min(steps - first, depth);
    if (count < steps - first) {
      next_a = numbers_at(a_rows, min(first + depth + from_a.x, steps - 1) * a_step);
      next_b = numbers_at(b_columns, min(first + depth + from_b.x, steps - 1) * b_step);
    }
    if (count == depth)  // a loop to unroll
      for (uint step = 0; step < depth; ++step) add_products(step, invocation);
    else
      for (uint step = 0; step < count; ++step) add_products(step, invocation);
  }
  const uint column = tile.x + invocation.x * adjacent_columns, row = tile.y + invocation.y;
  write_row(n, row, column, c0);
  write_row(n, row + 16, column, c1);
  write_row(n, row + 32, column, c2);
  write_row(n, row + 48, column, c3);
}
