#version 460
// Products of SiLU and numbers of half.
#define HALF
#include "silu_multiply.glsl"
