// Selected elements of 32-bit elements.
#include "top_k.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_top_k_select_words(wye_span<const unsigned> x, wye_span<const unsigned> places, wye_span<unsigned> selected,
                          wye_span<unsigned> selected_places, SortShape shape) {
  select_elements(x, places, selected, selected_places, shape);
}
