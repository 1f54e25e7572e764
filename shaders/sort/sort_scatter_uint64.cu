// Sorted tiles of uint64.
#include "sort_scatter.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_sort_scatter_uint64(wye_span<const Size> keys, wye_span<const unsigned> values, wye_span<Size> sorted_keys,
                          wye_span<unsigned> sorted_values, wye_span<const unsigned> bases, SortShape shape) {
  sort_tiles(keys, values, sorted_keys, sorted_values, bases, shape);
}
