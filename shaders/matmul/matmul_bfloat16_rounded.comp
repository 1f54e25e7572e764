#version 460
// Products of bfloat16, rounded to bfloat16.
#define BFLOAT16
#define ROUNDED
#include "matmul.glsl"
