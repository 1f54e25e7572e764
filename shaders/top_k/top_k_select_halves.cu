// Selected elements of 16-bit elements.
#include "top_k.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_top_k_select_halves(wye_span<const unsigned short> x, wye_span<const unsigned> places, wye_span<unsigned short> selected,
                          wye_span<unsigned> selected_places, SortShape shape) {
  select_elements(x, places, selected, selected_places, shape);
}
