// Compare the bits of floats, because drivers may assume that no number is NaN.
bool is_below(float v, float limit) { return (floatBitsToUint(v) & 0x7fffffff) <= floatBitsToUint(limit); }
bool is_nan(float v) { return (floatBitsToUint(v) & 0x7fffffff) > 0x7f800000; }
