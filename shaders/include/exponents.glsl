// A sum of exponentials as {largest exponent, sum of exp(exponent - largest)}, which cannot overflow.
// Source: Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867.
#define PARTIAL vec2

const vec2 nothing = vec2(-3.4028234e38, 0.0);

// exp(v) for v <= 0. Written out, because drivers disagree about what is far below zero.
float exponential(float v) { return v < -87.0 ? 0.0 : exp(v); }

// Rounded, and not fused with what is subtracted from it: the largest minus itself has to be 0, whatever its size.
float scaled(float x, float factor) {
  precise const float product = x * factor;
  return product;
}

float not_a_number() { return uintBitsToFloat(0x7fc00000); }

// The sum with exp(v) added: -infinity adds nothing, +infinity and NaN spoil it. Told apart by their bits, because
// comparisons with NaN may be compiled away.
vec2 absorb(vec2 sum, float v) {
  const uint bits = floatBitsToUint(v);
  if ((bits & 0x7f800000) == 0x7f800000) return bits == 0xff800000 ? sum : vec2(sum.x, not_a_number());
  const float above = v - sum.x;
  const float ratio = exponential(-abs(above));
  return above > 0.0 ? vec2(v, sum.y * ratio + 1.0) : vec2(sum.x, sum.y + ratio);
}

vec2 combine(vec2 a, vec2 b) {
  const float most = max(a.x, b.x);
  return vec2(most, a.y * exponential(a.x - most) + b.y * exponential(b.x - most));
}

// What to multiply exponentials by to make them weights: NaN where nothing was added.
float share_of(vec2 sum) { return sum.y == 0.0 ? not_a_number() : 1.0 / sum.y; }
