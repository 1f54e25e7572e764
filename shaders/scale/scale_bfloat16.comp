#version 460
// Multiplies rows of bfloat16.
#define BFLOAT16
#include "scale.glsl"
