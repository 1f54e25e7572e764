// Attention of half.
#include "attention_tensor.cuh"

extern "C" __global__ void __launch_bounds__(128, 4)
    wye_attention_half(wye_span<const unsigned short> q, wye_span<const unsigned short> k, wye_span<const unsigned short> v,
                       wye_span<unsigned short> result, wye_span<float> state, Stretch stretch) {
  __shared__ AttentionTiles<TensorHalf> tiles;
  attend<TensorHalf>(q.data, k.data, v.data, result.data, state.data, stretch, tiles);
}
