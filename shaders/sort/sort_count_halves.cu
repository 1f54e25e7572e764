// Counts of digits of 16-bit elements.
#include "sort_count.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_sort_count_halves(wye_span<const unsigned short> keys, wye_span<unsigned> counts, SortShape shape) {
  count_digits(keys, counts, shape);
}
