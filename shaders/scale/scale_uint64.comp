#version 460
// Multiplies rows of uint64.
#define UINT64
#include "scale.glsl"
