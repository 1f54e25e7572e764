#version 460
// Multiplies rows of 32-bit integers.
#define WORD
#include "scale.glsl"
