// Rounds to 16-bit elements: half, or bfloat16 with BFLOAT16. The bits are those of include/wye/base/half.hpp,
// because the rounding of packHalf2x16 is not specified.
#include "bytes.glsl"

// Returns bits / 2^by, rounded to nearest, ties to even.
uint round_off(uint bits, uint by) { return (bits + (1u << (by - 1)) - 1 + (bits >> by & 1)) >> by; }

uint narrow(uint bits) {
  const uint size = bits & 0x7fffffffu;
#ifdef BFLOAT16
  return size > 0x7f800000u ? bits >> 16 | 0x40u : round_off(bits, 16);
#else
  uint half_size = 0;
  if (size > 0x7f800000u)
    half_size = 0x7e00u | size >> 13 & 0x3ffu;
  else if (size >= 0x477ff000u)
    half_size = 0x7c00u;
  else if (size >= 0x38800000u)
    half_size = round_off(size - 0x38000000u, 13);
  else if (size >= 0x33000000u)
    half_size = round_off(size & 0x7fffffu | 0x800000u, 126 - (size >> 23));
  return bits >> 16 & 0x8000u | half_size;
#endif
}
