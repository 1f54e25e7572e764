#pragma once
// Adds to each row of x a row of a table. Rows whose number the table does not have stay as they are.
#include "fours.cuh"
#include "rows.cuh"

// `split` has the rows of x. Without `rows`, row 0 is added to all.
template <class T>
__device__ void add_table_rows(wye_span<typename T::Number> x, wye_span<const typename T::Number> table,
                               wye_span<const unsigned> rows, RowSplit split, unsigned table_rows) {
  typedef typename T::Number Number;
  const Piece p = piece_of(split);
  if (p.size == 0) return;
  const unsigned row = rows.size == 0 ? 0 : rows[p.row];
  if (row >= table_rows) return;
  Number* const to = x.data + p.first;
  const Number* const added = table.data + Size(row) * split.columns + (p.first - p.row * split.columns);
  const bool together = has_fours<T>(to) && has_fours<T>(added);
  for (unsigned i = p.lane; 4 * i < p.size; i += p.lanes) {
    const Quad a = four_at<T>(to, i, p.size, together), b = four_at<T>(added, i, p.size, together);
    write_four<T>(to, i, p.size, together, {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w});
  }
}
