// Epilogues of products: activation(scale sum + bias) + residual.
#include "exponential.glsl"

// `Activation` of include/wye/workloads/matmul.hpp.
const uint no_activation = 0, relu = 1, gelu = 2, gelu_tanh = 3, silu = 4;

// Compares bits, because compilers may remove comparisons with NaN. Source of the normal distribution's tail: Abramowitz and
// Stegun, Handbook of Mathematical Functions, 7.1.26.
float activated(float x, uint activation) {
  const uint bits = floatBitsToUint(x);
  if (activation == no_activation || (bits & 0x7fffffffu) > 0x7f800000u) return x;
  const bool negative = bits >> 31 != 0;
  if (activation == relu) return negative ? 0.0 : x;
  float gate;
  if (activation == gelu) {
    const float t = 1.0 / (0.23164190 * abs(x) + 1.0);
    const float p = (((0.53070271 * t - 0.72657601) * t + 0.71070687) * t - 0.14224837) * t + 0.12741480;
    const float tail = p * t * exponential(-0.5 * x * x);
    gate = negative ? tail : 1.0 - tail;
  } else {
    const float argument = activation == silu ? x : 1.59576912 * (0.044715 * x * x * x + x);
    const float below = exponential(-abs(argument));
    gate = (negative ? below : 1.0) / (1.0 + below);
  }
  return gate == 0.0 ? 0.0 : x * gate;
}
