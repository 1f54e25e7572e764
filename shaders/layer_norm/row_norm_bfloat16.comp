#version 460
// Norms of rows of bfloat16.
#define BFLOAT16
#include "layer_norm.glsl"
