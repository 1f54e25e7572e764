#version 460
// Extremes of half.
#define HALF
#include "extremes.glsl"
