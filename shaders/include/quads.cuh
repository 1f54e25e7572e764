#pragma once
// Four neighbouring floats, which one instruction of 128 bits loads or stores.
#include "flat.cuh"

struct alignas(16) Quad {
  float x, y, z, w;
};

template <class T>
__device__ bool has_quads(const T* data) {
  return reinterpret_cast<Size>(data) % sizeof(Quad) == 0;
}
