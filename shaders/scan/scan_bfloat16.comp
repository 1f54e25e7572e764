#version 460
// Prefix sums of bfloat16.
#define BFLOAT16
#include "scan.glsl"
