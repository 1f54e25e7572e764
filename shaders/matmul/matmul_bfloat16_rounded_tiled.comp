#version 460
// Products of bfloat16, rounded to bfloat16, for GPUs.
#define BFLOAT16
#define ROUNDED
#include "matmul_tiled.glsl"
