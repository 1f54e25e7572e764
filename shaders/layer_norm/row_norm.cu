// Norms of rows of float.
#include "layer_norm.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_row_norm(wye_span<const Float::Number> x, wye_span<Float::Number> residual, wye_span<const Float::Number> weight, wye_span<const Float::Number> bias, wye_span<float> partials, wye_span<Float::Number> result, RowSplit split, NormStep norm) {
  norm_rows<Float>({x.data, residual.size == 0 ? nullptr : residual.data, weight.data, bias.size == 0 ? nullptr : bias.data, result.data}, partials, split, norm);
}
