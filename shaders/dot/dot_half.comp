#version 460
// Sums of products of half.
#define HALF
#define PRODUCTS
#include "sums.glsl"
