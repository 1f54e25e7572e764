// Adds rows of half.
#include "add_rows.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_add_rows_half(wye_span<Half::Number> x, wye_span<const Half::Number> table, wye_span<const unsigned> rows, RowSplit split, unsigned table_rows) {
  add_table_rows<Half>(x, table, rows, split, table_rows);
}
