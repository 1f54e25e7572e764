#version 460
// Norms of half.
#define HALF
#include "norm.glsl"
