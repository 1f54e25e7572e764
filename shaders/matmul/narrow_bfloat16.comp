#version 460
// To bfloat16.
#define BFLOAT16
#include "narrow.glsl"
