#pragma once
// Declarations that the kernels of PageRank share. `pagerank.glsl` describes the parts of `shares`.
#include "flat.cuh"
#include "team.cuh"

struct Summary {
  unsigned iterations;
  float residual;
  unsigned converged;
  unsigned ignored_links;
};

constexpr unsigned links_per_block = 2048;
constexpr unsigned nodes_per_group = 256;

__device__ float* part_of(float* shares, unsigned part, unsigned nodes) { return shares + Size(part) * (nodes + 1); }
__device__ const float* part_of(const float* shares, unsigned part, unsigned nodes) {
  return shares + Size(part) * (nodes + 1);
}

__device__ Pair combine(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }

__device__ bool has_preferences(Size shares, unsigned nodes) { return shares > 4 * (Size(nodes) + 1); }
__device__ bool has_weights(Size shares, unsigned nodes) { return shares > 5 * (Size(nodes) + 1); }

// Returns the bits of a weight. Negative numbers, NaN and infinity count as 0.
__device__ unsigned weight_of(float given) {
  const unsigned bits = __float_as_uint(given);
  return bits < 0x7f800000u ? bits : 0u;
}

// The 24 bits of a weight at the top of a word, and the difference of its exponent to that of the largest
// weight.
struct Below {
  unsigned top, shift;
};
__device__ Below weight_below(unsigned largest, unsigned bits) {
  const unsigned mantissa = (bits & 0x7fffffu) | (bits >= 0x800000u ? 0x800000u : 0u);
  return {mantissa << 8, max(largest >> 23, 1u) - max(bits >> 23, 1u)};
}

// Returns 0 for negative numbers, NaN and infinity, because the host checks only memory that it can read.
__device__ float preference(float given) { return __float_as_uint(given) < 0x7f800000u ? given : 0.0f; }

// A sum whose error does not grow with the number of additions (Kahan). Compilers of CUDA C++ keep the order of additions.
struct Sum {
  float value = 0.0f, excess = 0.0f;
  __device__ void add(float x) {
    const float corrected = x - excess, next = value + corrected;
    excess = (next - value) - corrected;
    value = next;
  }
};
