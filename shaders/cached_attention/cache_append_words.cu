// Appends keys and values of 32 bits.
#include "cache_append.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_cache_append_words(wye_span<const unsigned> k, wye_span<const unsigned> v, wye_span<unsigned> key_cache,
                          wye_span<unsigned> value_cache, wye_span<const unsigned> places, CacheRows shape) {
  append_rows<unsigned>(k, v, key_cache, value_cache, places, shape);
}
