// Products of SiLU and numbers of half.
#include "silu_multiply.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_silu_multiply_half(wye_span<const Half::Number> gate, wye_span<const Half::Number> up, wye_span<Half::Number> result, RowSplit split) {
  multiply_silu<Half>(gate, up, result, split);
}
