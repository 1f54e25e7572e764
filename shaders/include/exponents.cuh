#pragma once
// A sum of exponentials as {largest exponent, sum of exp(exponent - largest)}, which cannot overflow: as `exponents.glsl` has it,
// where its source is named.
#include "team.cuh"

struct ExponentSum {
  float most, sum;
};
__device__ ExponentSum shuffled(ExponentSum v, int bits) { return {shuffled(v.most, bits), shuffled(v.sum, bits)}; }

constexpr float largest_float = 3.4028234e38f;
constexpr ExponentSum no_exponents = {-largest_float, 0.0f};

// exp(v) for v <= 0.
__device__ float exponential(float v) { return v < -87.0f ? 0.0f : expf(v); }

// Rounded, and not fused with what is subtracted from it: the largest minus itself has to be 0, whatever its size.
__device__ float scaled(float v, float factor) { return __fmul_rn(v, factor); }

// The sum with exp(v) added: -infinity adds nothing, +infinity and NaN spoil it.
__device__ ExponentSum absorb(ExponentSum sum, float v) {
  if (!(fabsf(v) <= largest_float)) return {sum.most, v < 0.0f ? sum.sum : nanf("")};
  const float above = v - sum.most, ratio = exponential(-fabsf(above));
  if (above > 0.0f) return {v, fmaf(sum.sum, ratio, 1.0f)};
  return {sum.most, sum.sum + ratio};
}

__device__ ExponentSum combine(ExponentSum a, ExponentSum b) {
  const float most = fmaxf(a.most, b.most);
  return {most, a.sum * exponential(a.most - most) + b.sum * exponential(b.most - most)};
}

// What to multiply exponentials by to make them weights: NaN where nothing was added.
__device__ float share_of(ExponentSum sum) { return sum.sum == 0.0f ? nanf("") : 1.0f / sum.sum; }
