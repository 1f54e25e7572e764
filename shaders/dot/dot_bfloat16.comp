#version 460
// Sums of products of bfloat16.
#define BFLOAT16
#define PRODUCTS
#include "sums.glsl"
