#version 460
// Products of half, rounded to half, for GPUs.
#define HALF
#define ROUNDED
#include "matmul_tiled.glsl"
