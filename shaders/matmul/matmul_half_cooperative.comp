#version 460
// Products of half, for GPUs with matrix units.
#define HALF
#include "matmul_cooperative.glsl"
