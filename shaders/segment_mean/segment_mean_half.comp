#version 460
// Means of segments of rows of half.
#define HALF
#include "segment_mean.glsl"
