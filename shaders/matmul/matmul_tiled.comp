#version 460
// Products of float32, for GPUs.
#include "matmul_tiled.glsl"
