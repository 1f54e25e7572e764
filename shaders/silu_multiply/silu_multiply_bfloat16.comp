#version 460
// Products of SiLU and numbers of bfloat16.
#define BFLOAT16
#include "silu_multiply.glsl"
