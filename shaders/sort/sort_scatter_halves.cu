// Sorted tiles of 16-bit elements.
#include "sort_scatter.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_sort_scatter_halves(wye_span<const unsigned short> keys, wye_span<const unsigned> values, wye_span<unsigned short> sorted_keys,
                          wye_span<unsigned> sorted_values, wye_span<const unsigned> bases, SortShape shape) {
  sort_tiles(keys, values, sorted_keys, sorted_values, bases, shape);
}
