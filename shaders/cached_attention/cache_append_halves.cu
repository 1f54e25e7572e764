// Appends keys and values of 16 bits.
#include "cache_append.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_cache_append_halves(wye_span<const unsigned short> k, wye_span<const unsigned short> v, wye_span<unsigned short> key_cache,
                          wye_span<unsigned short> value_cache, wye_span<const unsigned> places, CacheRows shape) {
  append_rows<unsigned short>(k, v, key_cache, value_cache, places, shape);
}
