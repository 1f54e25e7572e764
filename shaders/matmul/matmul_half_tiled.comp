#version 460
// Products of half, for GPUs.
#define HALF
#include "matmul_tiled.glsl"
