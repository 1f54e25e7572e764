// Norms of rows of bfloat16.
#include "layer_norm.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_row_norm_bfloat16(wye_span<const Bfloat16::Number> x, wye_span<Bfloat16::Number> residual, wye_span<const Bfloat16::Number> weight, wye_span<const Bfloat16::Number> bias, wye_span<float> partials, wye_span<Bfloat16::Number> result, RowSplit split, NormStep norm) {
  norm_rows<Bfloat16>({x.data, residual.size == 0 ? nullptr : residual.data, weight.data, bias.size == 0 ? nullptr : bias.data, result.data}, partials, split, norm);
}
