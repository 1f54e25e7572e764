#version 460
// Sums of stretches of rows of bfloat16.
#define BFLOAT16
#include "segment_sums.glsl"
