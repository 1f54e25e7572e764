// Norms of rows of half.
#include "layer_norm.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_row_norm_half(wye_span<const Half::Number> x, wye_span<Half::Number> residual, wye_span<const Half::Number> weight, wye_span<const Half::Number> bias, wye_span<float> partials, wye_span<Half::Number> result, RowSplit split, NormStep norm) {
  norm_rows<Half>({x.data, residual.size == 0 ? nullptr : residual.data, weight.data, bias.size == 0 ? nullptr : bias.data, result.data}, partials, split, norm);
}
