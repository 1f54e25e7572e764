// Products of SiLU and numbers of float.
#include "silu_multiply.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_silu_multiply(wye_span<const Float::Number> gate, wye_span<const Float::Number> up, wye_span<Float::Number> result, RowSplit split) {
  multiply_silu<Float>(gate, up, result, split);
}
