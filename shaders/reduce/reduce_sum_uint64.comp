#version 460
// Sums of uint64.
#define UINT64
#include "sums.glsl"
