#version 460
// Rotary positions of half.
#define HALF
#include "rope.glsl"
