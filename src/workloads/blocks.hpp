#pragma once
/// Blocks of elements that host code converts to floats.
#include <algorithm>
#include <cstddef>
#include <span>

#include "cpu.hpp"

namespace wye::inline v0::workloads::cpu {

/// The most elements of a block. Sums of blocks in single precision make the error independent of
/// the row's length.
inline constexpr std::size_t float_block = 1024;

/// Returns `n` elements as floats. `wide` has room for them.
inline const float* as_floats(const float* x, std::size_t, float*) { return x; }
template <class T>
const float* as_floats(const T* x, std::size_t n, float* wide) {
  widen(x, 1, n, n, wide);
  return wide;
}

/// Returns memory for floats that `write_floats` then writes to `to`: `to` itself, or `wide`.
inline float* room_of_floats(float* to, float*) { return to; }
template <class T>
float* room_of_floats(T*, float* wide) {
  return wide;
}
/// Writes floats, rounded to the type.
inline void write_floats(std::span<const float> from, float* to) {
  if (from.data() != to) std::copy(from.begin(), from.end(), to);
}
template <class T>
void write_floats(std::span<const float> from, T* to) {
  narrow(from, to);
}

/// Returns the sum of `sum_of(i, n)` of all blocks of `size` elements: of n elements from i on.
template <class F>
float sum_of_blocks(std::size_t size, F sum_of) {
  double total = 0;
  for (std::size_t i = 0; i < size; i += float_block)
    total += double{sum_of(i, std::min(float_block, size - i))};
  return static_cast<float>(total);
}

}  // namespace wye::workloads::cpu
