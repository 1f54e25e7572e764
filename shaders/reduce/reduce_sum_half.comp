#version 460
// Sums of half.
#define HALF
#include "sums.glsl"
