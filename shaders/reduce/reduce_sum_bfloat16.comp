#version 460
// Sums of bfloat16.
#define BFLOAT16
#include "sums.glsl"
