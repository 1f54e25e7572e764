#version 460
// Extremes of 32-bit integers.
#define WORD
#include "extremes.glsl"
