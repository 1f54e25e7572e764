// Products without shared memory, which costs drivers for CPUs ten times more than it saves. Adjacent invocations load
// adjacent elements.
#include "product.glsl"

void main() {
  const uvec3 tile = first_of_tile();
  const uint n = tile.z;
  const uint column = tile.x + (gl_LocalInvocationID.x & 15) * adjacent_columns;
  const uint row = tile.y + (gl_LocalInvocationID.x >> 4);
  if (n >= shape.batch || row >= shape.rows || column >= shape.columns) return;

  // Elements beyond the edge repeat the last row and column and are not written.
  const uvec4 r = min(uvec4(row, row + 16, row + 32, row + 48), shape.rows - 1);
  const uvec4 s = min(column + columns_of_invocation, shape.columns - 1);
  Line a0 = a_row(n, r.x), a1 = a_row(n, r.y), a2 = a_row(n, r.z), a3 = a_row(n, r.w);
  Line b0 = b_column(n, s.x), b1 = b_column(n, s.y), b2 = b_column(n, s.z), b3 = b_column(n, s.w);
  const uint a_step = shape.transposed_a != 0 ? shape.rows : 1, b_step = shape.transposed_b != 0 ? 1 : shape.columns;

  Sums c0 = Sums(0), c1 = Sums(0), c2 = Sums(0), c3 = Sums(0);
  for (uint i = 0, p = 0, k = 0; i < shape.last - shape.first; ++i, p += a_step, k += b_step) {
    const Sums right = Sums(at(b0, k), at(b1, k), at(b2, k), at(b3, k));
    c0 = ADD_PRODUCT(Sums(at(a0, p)), right, c0);
    c1 = ADD_PRODUCT(Sums(at(a1, p)), right, c1);
    c2 = ADD_PRODUCT(Sums(at(a2, p)), right, c2);
    c3 = ADD_PRODUCT(Sums(at(a3, p)), right, c3);
  }
  write_row(n, row, column, c0);
  write_row(n, row + 16, column, c1);
  write_row(n, row + 32, column, c2);
  write_row(n, row + 48, column, c3);
}
