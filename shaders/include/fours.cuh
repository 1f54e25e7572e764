#pragma once
// Four adjacent numbers at a time. The numbers that a thread processes do not depend on their alignment: sums of rows then
// have the same bits at any address.
#include "numbers.cuh"

// Returns whether one instruction can load four numbers at this address.
template <class T>
__device__ bool has_fours(const typename T::Number* data) {
  return has_quads<typename T::Four>(data);
}

// Returns numbers 4 i to 4 i + 3 of `size`, then zeros. `together`: whether one instruction can load four.
template <class T>
__device__ Quad four_at(const typename T::Number* from, unsigned i, unsigned size, bool together) {
  if (together && 4 * i + 4 <= size) return T::values(reinterpret_cast<const typename T::Four*>(from)[i]);
  return T::values(T::four(from + 4 * i, size - 4 * i));
}

__device__ Quad packed(Float, Quad v) { return v; }
template <class T>
__device__ typename T::Four packed(T, Quad v) {
  return {T::rounded(v.x, v.y), T::rounded(v.z, v.w)};
}

// Returns numbers rounded to the type.
template <class T>
__device__ Quad rounded(Quad v) {
  return T::values(packed(T(), v));
}

// Writes numbers 4 i to 4 i + 3 of `size`. `together`: whether one instruction can store four.
template <class T>
__device__ void write_four(typename T::Number* to, unsigned i, unsigned size, bool together, Quad v) {
  if (together && 4 * i + 4 <= size) {
    reinterpret_cast<typename T::Four*>(to)[i] = packed(T(), v);
    return;
  }
  const unsigned count = size - 4 * i;
  T::write_two(to + 4 * i, count, false, v.x, v.y);
  if (count > 2) T::write_two(to + 4 * i + 2, count - 2, false, v.z, v.w);
}
