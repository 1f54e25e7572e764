#version 460
// Sums of stretches of rows of half.
#define HALF
#include "segment_sums.glsl"
