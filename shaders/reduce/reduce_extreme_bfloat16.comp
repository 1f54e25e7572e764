#version 460
// Extremes of bfloat16.
#define BFLOAT16
#include "extremes.glsl"
