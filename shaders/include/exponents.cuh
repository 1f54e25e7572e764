#pragma once
// A sum of exponentials as {largest exponent, sum of exp(exponent - largest)}, which cannot overflow. Source:
// see `exponents.glsl`.
#include "exponential.cuh"
#include "team.cuh"

struct ExponentSum {
  float most, sum;
};
__device__ ExponentSum shuffled(ExponentSum v, int bits) { return {shuffled(v.most, bits), shuffled(v.sum, bits)}; }

constexpr float largest_float = 3.4028234e38f;
constexpr ExponentSum no_exponents = {-largest_float, 0.0f};

// Returns the rounded product. It must not be fused with a subtraction, because the largest exponent minus
// itself must be 0.
__device__ float scaled(float v, float factor) { return __fmul_rn(v, factor); }

// Adds exp(v) to the sum. -infinity adds nothing; +infinity and NaN make the sum NaN.
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

// Returns the factor that turns exponentials into weights; NaN if nothing was added.
__device__ float share_of(ExponentSum sum) { return sum.sum == 0.0f ? nanf("") : 1.0f / sum.sum; }
