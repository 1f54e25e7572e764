// Adds rows of bfloat16.
#include "add_rows.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_add_rows_bfloat16(wye_span<Bfloat16::Number> x, wye_span<const Bfloat16::Number> table, wye_span<const unsigned> rows, RowSplit split, unsigned table_rows) {
  add_table_rows<Bfloat16>(x, table, rows, split, table_rows);
}
