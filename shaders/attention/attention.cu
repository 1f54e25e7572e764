// Attention of float32.
#include "attention_plain.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_attention(wye_span<const float> q, wye_span<const float> k, wye_span<const float> v, wye_span<float> result,
                  wye_span<float> state, Stretch stretch) {
  __shared__ AttentionTiles<256> tiles;
  attend<Float>(q.data, k.data, v.data, result.data, state.data, stretch, tiles);
}
