#pragma once
// Four adjacent floats, which one 128-bit instruction loads or stores.
#include "flat.cuh"

struct alignas(16) Quad {
  float x, y, z, w;
};

// Returns whether one instruction can load a vector at this address.
template <class Vector = Quad, class T>
__device__ bool has_quads(const T* data) {
  return reinterpret_cast<Size>(data) % sizeof(Vector) == 0;
}
