#pragma once
// The length of a vector whose squares may overflow or underflow. Source: see `length.glsl`.
#include "team.cuh"

struct Squares {
  float plain, up, down;
};
__device__ Squares shuffled(Squares v, int bits) {
  return {shuffled(v.plain, bits), shuffled(v.up, bits), shuffled(v.down, bits)};
}
__device__ Squares combine(Squares a, Squares b) { return {a.plain + b.plain, a.up + b.up, a.down + b.down}; }

constexpr float scale_up = 1.2676506002282294e30f;            // 2^100, which lifts the square of 2^-149 above 2^-126
constexpr float scale_down = 8.271806125530277e-25f;         // 2^-80
constexpr float largest_square = 8.507059173023462e37f;      // 2^126; the smallest unscaled sum in range is 2^-80

__device__ void add_square(Squares& sums, float v) {
  const float up = v * scale_up, down = v * scale_down;
  sums.plain = fmaf(v, v, sums.plain);
  sums.up = fmaf(up, up, sums.up);
  sums.down = fmaf(down, down, sums.down);
}

// A factor and the sum of the squares of the numbers times that factor, which is in range.
struct ScaledSum {
  float factor, sum;
};
__device__ ScaledSum scaled_sum(Squares sums) {
  if (!(sums.plain <= largest_square)) return {scale_down, sums.down};  // infinities and NaN, too
  if (sums.plain < scale_down) return {scale_up, sums.up};
  return {1.0f, sums.plain};
}

// Returns the factors that scale the numbers to length 1, to be applied one after the other; zeros if all
// numbers are zero.
struct Factors {
  float first, second;
};
__device__ Factors to_unit(Squares sums) {
  const ScaledSum scaled = scaled_sum(sums);
  if (scaled.sum == 0.0f) return {0.0f, 0.0f};
  return {scaled.factor, 1.0f / sqrtf(scaled.sum)};
}

__device__ float length_of(Squares sums) {
  const ScaledSum scaled = scaled_sum(sums);
  return sqrtf(scaled.sum) / scaled.factor;
}

__device__ float scaled(float v, Factors by) { return v * by.first * by.second; }
