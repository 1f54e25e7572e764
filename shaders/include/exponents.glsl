// A sum of exponentials as {largest exponent, sum of exp(exponent - largest)}, which cannot overflow.
// Source: Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867.
#include "exponential.glsl"
#define PARTIAL vec2

const vec2 nothing = vec2(-3.4028234e38, 0.0);

// Returns the rounded product. It must not be fused with a subtraction, because the largest exponent minus
// itself must be 0.
float scaled(float x, float factor) {
  precise const float product = x * factor;
  return product;
}

float not_a_number() { return uintBitsToFloat(0x7fc00000); }

// Adds exp(v) to the sum. -infinity adds nothing; +infinity and NaN make the sum NaN. Compares bits, because
// compilers may remove comparisons with NaN.
vec2 absorb(vec2 sum, float v) {
  const uint bits = floatBitsToUint(v);
  if ((bits & 0x7f800000) == 0x7f800000) return bits == 0xff800000 ? sum : vec2(sum.x, not_a_number());
  const float above = v - sum.x;
  const float ratio = exponential(-abs(above));
  return above > 0.0 ? vec2(v, sum.y * ratio + 1.0) : vec2(sum.x, sum.y + ratio);
}

vec2 combine(vec2 a, vec2 b) {
  const float most = max(a.x, b.x);
  // Fused operations would not be commutative.
  precise const float sum = a.y * exponential(a.x - most) + b.y * exponential(b.x - most);
  return vec2(most, sum);
}

// Returns the factor that turns exponentials into weights; NaN if nothing was added.
float share_of(vec2 sum) { return sum.y == 0.0 ? not_a_number() : 1.0 / sum.y; }
