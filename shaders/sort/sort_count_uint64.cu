// Counts of digits of uint64.
#include "sort_count.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_sort_count_uint64(wye_span<const Size> keys, wye_span<unsigned> counts, SortShape shape) {
  count_digits(keys, counts, shape);
}
