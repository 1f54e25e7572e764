#version 460
// Rotary positions of float.
#include "rope.glsl"
