#version 460
// Means of segments of rows of bfloat16.
#define BFLOAT16
#include "segment_mean.glsl"
