// Attention of float to a cache of keys.
#include "cached_attention.cuh"

extern "C" __global__ void __launch_bounds__(256, 4)
    wye_cached_attention(wye_span<const Float::Number> q, wye_span<const Float::Number> keys, wye_span<const Float::Number> values,
        wye_span<const unsigned> places, wye_span<float> state, wye_span<Float::Number> result, CachedStretches shape) {
  __shared__ CachedTiles tiles;
  attend_rows<Float>(q.data, keys.data, values.data, places.data, state.data, result.data, shape, tiles);
}
