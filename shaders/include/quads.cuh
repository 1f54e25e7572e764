#pragma once
// Four neighbouring floats, which one instruction of 128 bits loads or stores.
#include "flat.cuh"

struct alignas(16) Quad {
  float x, y, z, w;
};

// Whether vectors that begin here can be loaded by one instruction.
template <class Vector = Quad, class T>
__device__ bool has_quads(const T* data) {
  return reinterpret_cast<Size>(data) % sizeof(Vector) == 0;
}
