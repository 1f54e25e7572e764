#pragma once
// Rounds to 16 bits. The bits are those of include/wye/base/half.hpp.
#include "quads.cuh"

// Returns bits / 2^by, rounded to nearest, ties to even.
__device__ unsigned round_off(unsigned bits, unsigned by) { return (bits + (1u << (by - 1)) - 1 + (bits >> by & 1)) >> by; }

__device__ unsigned half_bits(float value) {
  const unsigned bits = __float_as_uint(value), size = bits & 0x7fffffffu;
  unsigned half = 0;
  if (size > 0x7f800000u)
    half = 0x7e00u | (size >> 13 & 0x3ffu);
  else if (size >= 0x477ff000u)
    half = 0x7c00u;
  else if (size >= 0x38800000u)
    half = round_off(size - 0x38000000u, 13);
  else if (size >= 0x33000000u)
    half = round_off((size & 0x7fffffu) | 0x800000u, 126 - (size >> 23));
  return (bits >> 16 & 0x8000u) | half;
}

__device__ unsigned bfloat16_bits(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : round_off(bits, 16);
}
