#pragma once
// Declarations that the kernels of force_layout share. `force_layout.glsl` describes the buffers.
#include "flat.cuh"
#include "team.cuh"

__device__ Pair combine(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }

// The links of a node, [first, last); none if the offsets are invalid.
struct Links {
  Size first, last;
};
__device__ Links links_of(wye_span<const unsigned> offsets, Size links, unsigned node) {
  const Size first = min(Size(offsets[node]), links), last = min(Size(offsets[node + 1]), links);
  return {first, max(first, min(last, first + 65536))};
}

__device__ bool is_coordinate(float v) { return fabsf(v) <= 1073741824.0f; }        // 2^30
__device__ bool is_force(float v) { return fabsf(v) <= 1152921504606846976.0f; }    // 2^60

// Returns the force of the iteration before.
__device__ Pair force_before(wye_span<float> state, unsigned nodes, unsigned node) {
  const Pair force = {state[node], state[nodes + node]};
  return is_force(force.x) && is_force(force.y) ? force : Pair{0.0f, 0.0f};
}

__device__ float size_of(float x, float y) { return sqrtf(fmaf(x, x, y * y)); }
