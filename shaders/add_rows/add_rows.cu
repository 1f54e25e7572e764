// Adds rows of float.
#include "add_rows.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_add_rows(wye_span<Float::Number> x, wye_span<const Float::Number> table, wye_span<const unsigned> rows, RowSplit split, unsigned table_rows) {
  add_table_rows<Float>(x, table, rows, split, table_rows);
}
