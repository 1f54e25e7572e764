#version 460
// Products of bfloat16, for GPUs.
#define BFLOAT16
#include "matmul_tiled.glsl"
