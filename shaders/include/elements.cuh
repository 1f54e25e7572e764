#pragma once
// Elements of arrays as terms of sums and as keys, which are unsigned integers with the order of the elements.
#include "numbers.cuh"
#include "rows.cuh"

// As many adjacent elements as one 128-bit instruction loads.
template <class Number>
struct alignas(16) Pack {
  static constexpr unsigned width = 16 / sizeof(Number);
  Number at[width];
};

template <class Number>
__device__ Pack<Number> pack_at(const Number* from, unsigned i) {
  return reinterpret_cast<const Pack<Number>*>(from)[i];
}

// Returns the key of a float of 32 bits. All NaN have the largest key, and both zeros the same one. `infinity` is above
// the bits of all numbers, and below those of NaN.
__device__ unsigned key_of_float(unsigned bits, unsigned infinity) {
  const unsigned size = bits & 0x7fffffffu, zero = 0x80000000u;
  return size > infinity ? 0xffffffffu : bits > size ? zero - size : zero + size;
}

struct FloatElement {
  typedef unsigned Number;
  typedef unsigned Key;
  typedef float Term;
  __device__ static float term(unsigned bits) { return __uint_as_float(bits); }
  __device__ static unsigned key(unsigned bits) { return key_of_float(bits, 0x7f800000u); }
};
struct HalfElement {
  typedef unsigned short Number;
  typedef unsigned Key;
  typedef float Term;
  __device__ static float term(Number bits) {
    float low, high;
    Half::split(bits, low, high);
    return low;
  }
  __device__ static Number rounded(float v) { return Number(Half::rounded(v, 0.0f)); }
  __device__ static unsigned key(Number bits) { return key_of_float(unsigned(bits) << 16, 0x7c000000u); }
};
struct Bfloat16Element {
  typedef unsigned short Number;
  typedef unsigned Key;
  typedef float Term;
  __device__ static float term(Number bits) { return __uint_as_float(unsigned(bits) << 16); }
  __device__ static Number rounded(float v) { return Number(Bfloat16::rounded(v, 0.0f)); }
  __device__ static unsigned key(Number bits) { return key_of_float(unsigned(bits) << 16, 0x7f800000u); }
};
// Integers of 32 bits, signed or not.
struct WordElement {
  typedef unsigned Number;
  typedef unsigned Key;
  typedef unsigned Term;
  __device__ static unsigned term(unsigned bits) { return bits; }
  __device__ static unsigned key(unsigned bits) { return bits; }
};
struct Uint64Element {
  typedef Size Number;
  typedef Size Key;
  typedef Size Term;
  __device__ static Size term(Size bits) { return bits; }
  __device__ static Size key(Size bits) { return bits; }
};

__device__ float add_product(float sum, float a, float b) { return fmaf(a, b, sum); }
__device__ unsigned add_product(unsigned sum, unsigned a, unsigned b) { return sum + a * b; }
__device__ Size add_product(Size sum, Size a, Size b) { return sum + a * b; }

// Calls `of_pack(i)` for each of this thread's packs of `width` elements, the first `packs` of a piece. Calls
// `of_element(i, j)` for its elements beyond, with j from 0 to 3 in turn.
template <unsigned width, class OfPack, class OfElement>
__device__ void each_pack(Piece p, unsigned packs, OfPack of_pack, OfElement of_element) {
  for (unsigned i = p.lane; i < packs; i += p.lanes) of_pack(i);
  for (unsigned i = width * packs + p.lane; i < p.size; i += 4 * p.lanes)
#pragma unroll
    for (unsigned j = 0; j < 4; ++j)
      if (i + j * p.lanes < p.size) of_element(i + j * p.lanes, j);
}
