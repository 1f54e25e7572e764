#pragma once
// to = from, rounded to 16 bits. Elements that share a word are written together. The bits are those of
// include/wye/base/half.hpp.
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

template <class F>
__device__ void narrow(wye_span<const float> from, wye_span<unsigned short> to, F bits) {
  const Size before = reinterpret_cast<Size>(to.data) / 2 % 2;  // elements of the first word that do not belong to `to`
  const Size begin = before < to.size ? before : to.size, pairs = (to.size - begin) / 2;
  for (Size i = flat_thread(); i < pairs; i += flat_threads())
    reinterpret_cast<unsigned*>(to.data + begin)[i] = bits(from[begin + 2 * i]) | bits(from[begin + 2 * i + 1]) << 16;
  if (flat_thread() != 0) return;
  if (begin != 0) to[0] = (unsigned short)bits(from[0]);
  if (begin + 2 * pairs < to.size) to[to.size - 1] = (unsigned short)bits(from[to.size - 1]);
}
