#version 460
// Products of int8, for GPUs.
#define INT8
#include "matmul_tiled.glsl"
