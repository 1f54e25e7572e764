#version 460
// Rotary positions of bfloat16.
#define BFLOAT16
#include "rope.glsl"
