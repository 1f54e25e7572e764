#version 460
// Multiplies rows of half.
#define HALF
#include "scale.glsl"
