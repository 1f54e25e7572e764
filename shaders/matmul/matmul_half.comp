#version 460
// Products of half.
#define HALF
#include "matmul.glsl"
