#version 460
// Norms of rows of half.
#define HALF
#include "layer_norm.glsl"
