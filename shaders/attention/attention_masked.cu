// Attention of float32 with a mask, without tensor cores.
#include "attention_plain.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_attention_masked(wye_span<const float> q, wye_span<const float> k,
                         wye_span<const float> v, wye_span<float> result,
                         wye_span<const float> mask, wye_span<float> state, Stretch stretch) {
  __shared__ AttentionTiles<256> tiles;
  attend<Float>(q.data, k.data, v.data, result.data, state.data, stretch, Mask{mask.data, mask.size}, tiles);
}
