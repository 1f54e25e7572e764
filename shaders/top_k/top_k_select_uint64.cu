// Selected elements of uint64.
#include "top_k.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_top_k_select_uint64(wye_span<const Size> x, wye_span<const unsigned> places, wye_span<Size> selected,
                          wye_span<unsigned> selected_places, SortShape shape) {
  select_elements(x, places, selected, selected_places, shape);
}
