// Attention of bfloat16 to a cache of keys.
#include "cached_attention.cuh"

extern "C" __global__ void __launch_bounds__(256, 4)
    wye_cached_attention_bfloat16(wye_span<const Bfloat16::Number> q, wye_span<const Bfloat16::Number> keys, wye_span<const Bfloat16::Number> values,
        wye_span<const unsigned> places, wye_span<float> state, wye_span<Bfloat16::Number> result, CachedStretches shape) {
  __shared__ CachedTiles tiles;
  attend_rows<Bfloat16>(q.data, keys.data, values.data, places.data, state.data, result.data, shape, tiles);
}
