#version 460
// Products of bfloat16.
#define BFLOAT16
#include "matmul.glsl"
