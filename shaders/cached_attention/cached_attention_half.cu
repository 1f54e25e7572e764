// Attention of half to a cache of keys.
#include "cached_attention.cuh"

extern "C" __global__ void __launch_bounds__(256, 4)
    wye_cached_attention_half(wye_span<const Half::Number> q, wye_span<const Half::Number> keys, wye_span<const Half::Number> values,
        wye_span<const unsigned> places, wye_span<float> state, wye_span<Half::Number> result, CachedStretches shape) {
  __shared__ CachedTiles tiles;
  attend_rows<Half>(q.data, keys.data, values.data, places.data, state.data, result.data, shape, tiles);
}
