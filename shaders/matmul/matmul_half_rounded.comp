#version 460
// Products of half, rounded to half.
#define HALF
#define ROUNDED
#include "matmul.glsl"
