#version 460
// Sums of products of uint64.
#define UINT64
#define PRODUCTS
#include "sums.glsl"
