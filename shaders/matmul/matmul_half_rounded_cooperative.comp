#version 460
// Products of half, rounded to half, for GPUs with matrix units.
#define HALF
#define ROUNDED
#include "matmul_cooperative.glsl"
