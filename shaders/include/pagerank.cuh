#pragma once
// What the kernels of PageRank share. Where the parts of `shares` lie, `pagerank.glsl` says.
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
