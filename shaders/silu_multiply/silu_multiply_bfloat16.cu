// Products of SiLU and numbers of bfloat16.
#include "silu_multiply.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_silu_multiply_bfloat16(wye_span<const Bfloat16::Number> gate, wye_span<const Bfloat16::Number> up, wye_span<Bfloat16::Number> result, RowSplit split) {
  multiply_silu<Bfloat16>(gate, up, result, split);
}
