#pragma once
// Rotates pairs of elements of heads, in place; see `rope.glsl`.
#include "numbers.cuh"

struct Rotation {
  unsigned rows;
  unsigned heads;
  unsigned head_size;
  unsigned rotated;
  unsigned team_heads;
  unsigned lanes_log2;
  unsigned neighbours;
  unsigned ratio_low;
  unsigned ratio_high;
  unsigned ramp_first;
  unsigned ramp_length;
  unsigned shrink_low;
  unsigned shrink_high;
  unsigned slope_low;
  unsigned slope_high;
  float magnitude;
};

__device__ Size frequency(unsigned i, Size ratio) {
  Size turns = 0x28be60db9391054aull;
  for (; i != 0; i >>= 1) {
    if ((i & 1) != 0) turns = __umul64hi(turns, ratio);
    ratio = __umul64hi(ratio, ratio);
  }
  return turns;
}

// Returns turns / factor, rounded down, modulo 2^64.
__device__ Size divided(Size turns, float factor) {
  const unsigned bits = __float_as_uint(factor), divisor = (bits & 0x7fffffu) | 0x800000u, exponent = bits >> 23 & 255u;
  Size quotient = 0, low = turns << 23;  // turns 2^23
  unsigned high = unsigned(turns >> 41), rest = 0;
  for (int i = 0; i < 12; ++i) {
    const unsigned some = rest << 8 | high >> 24;
    high = high << 8 | unsigned(low >> 56);
    low <<= 8;
    quotient = quotient << 8 | some / divisor;
    rest = some % divisor;
  }
  if (exponent < 127) return quotient << min(127 - exponent, 31u);
  return exponent - 127 < 64 ? quotient >> (exponent - 127) : 0;
}

// Returns the frequency of pair i with the options: `turns` are those of the base.
__device__ Size with_options(Size turns, unsigned i, wye_span<const float> factors, const Rotation& shape) {
  const unsigned steps = min(i > shape.ramp_first ? i - shape.ramp_first : 0u, shape.ramp_length);
  const Size shrink = (shape.shrink_low | Size(shape.shrink_high) << 32) + steps * (shape.slope_low | Size(shape.slope_high) << 32);
  turns -= __umul64hi(turns, shrink);
  // Last, because factors below 1 may give whole turns, which are lost.
  return factors.size == 0 ? turns : divided(turns, factors[i]);
}

struct Turn {
  float cosine, sine;
};

__device__ Turn turn_by(Size angle) {
  const unsigned top = unsigned(angle >> 32), quarter = (top + 0x20000000u) >> 30;
  const float a = float(int(top - (quarter << 30))) * 1.4629180792671596e-9f;
  const float z = a * a;
  const float sine = a + a * z * (-0.16666650665f + z * (0.0083319783935f + z * -0.00019495601938f));
  const float cosine = 1.0f - 0.5f * z + z * z * (0.041666646861f + z * (-0.0013887367213f + z * 2.4438415518e-5f));
  const Turn turned = (quarter & 1) == 0 ? Turn{cosine, sine} : Turn{-sine, cosine};
  return (quarter & 2) == 0 ? turned : Turn{-turned.cosine, -turned.sine};
}

__device__ Turn longer(Turn turn, float magnitude) { return {turn.cosine * magnitude, turn.sine * magnitude}; }

__device__ void rotate_pair(Turn turn, float& x, float& y) {
  const float before = x;
  x = before * turn.cosine - y * turn.sine;
  y = before * turn.sine + y * turn.cosine;
}

// Returns whether two numbers are aligned to their size.
template <class Number>
__device__ bool are_together(const Number* two) {
  return reinterpret_cast<Size>(two) % (2 * sizeof(Number)) == 0;
}

template <class T>
__device__ void rotate_heads(wye_span<typename T::Number> x, wye_span<const unsigned> positions,
                             wye_span<const float> factors, const Rotation& shape) {
  typedef typename T::Number Number;
  const unsigned groups = (shape.heads + shape.team_heads - 1) / shape.team_heads;
  const Size team = flat_thread() >> shape.lanes_log2;
  if (groups == 0 || team / groups >= shape.rows) return;
  const unsigned row = unsigned(team / groups), first_head = unsigned(team % groups) * shape.team_heads;
  const unsigned last_head = min(first_head + shape.team_heads, shape.heads);
  const unsigned lanes = 1u << shape.lanes_log2, pairs = shape.rotated / 2, position = positions[row];
  const Size ratio = shape.ratio_low | Size(shape.ratio_high) << 32;

  for (unsigned unit = threadIdx.x & (lanes - 1); 2 * unit < pairs; unit += lanes) {
    const unsigned i = 2 * unit, count = min(2u, pairs - i);
    const Size turns = frequency(i, ratio);
    const Turn turn0 = longer(turn_by(with_options(turns, i, factors, shape) * position), shape.magnitude);
    Turn turn1 = {1.0f, 0.0f};
    if (count > 1)
      turn1 = longer(turn_by(with_options(__umul64hi(turns, ratio), i + 1, factors, shape) * position), shape.magnitude);
    // The elements of two pairs are two runs of two: both elements of one pair, or the first or the second of both.
    const unsigned low = shape.neighbours != 0 ? 2 * i : i, high = shape.neighbours != 0 ? 2 * i + 2 : i + pairs;
    const unsigned low_count = shape.neighbours != 0 ? 2 : count, high_count = shape.neighbours != 0 ? 2 * count - 2 : count;
    for (unsigned head = first_head; head < last_head; ++head) {
      Number* const at = x.data + Size(row * shape.heads + head) * shape.head_size;
      float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
      a = T::at(at + low);
      if (low_count > 1) b = T::at(at + low + 1);
      if (high_count > 0) c = T::at(at + high);
      if (high_count > 1) d = T::at(at + high + 1);
      if (shape.neighbours != 0) {
        rotate_pair(turn0, a, b);
        rotate_pair(turn1, c, d);
      } else {
        rotate_pair(turn0, a, c);
        rotate_pair(turn1, b, d);
      }
      T::write_two(at + low, low_count, are_together(at + low), a, b);
      T::write_two(at + high, high_count, are_together(at + high), c, d);
    }
  }
}
