// Attention of half with a mask, without tensor cores.
#include "attention_plain.cuh"

extern "C" __global__ void __launch_bounds__(128, 4)
    wye_attention_half_masked(wye_span<const unsigned short> q, wye_span<const unsigned short> k,
                              wye_span<const unsigned short> v, wye_span<unsigned short> result,
                              wye_span<const float> mask, wye_span<float> state, Stretch stretch) {
  __shared__ AttentionTiles<128> tiles;
  attend<Half>(q.data, k.data, v.data, result.data, state.data, stretch, Mask{mask.data, mask.size}, tiles);
}
