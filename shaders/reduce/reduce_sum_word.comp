#version 460
// Sums of 32-bit integers.
#define WORD
#include "sums.glsl"
