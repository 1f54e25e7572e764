#version 460
// Norms of bfloat16.
#define BFLOAT16
#include "norm.glsl"
