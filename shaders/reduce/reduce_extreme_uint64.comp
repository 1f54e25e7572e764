#version 460
// Extremes of uint64.
#define UINT64
#include "extremes.glsl"
