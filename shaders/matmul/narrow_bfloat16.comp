#version 460
// Rounds to bfloat16.
#define BFLOAT16
#include "narrow.glsl"
