#version 460
// Sums of products of 32-bit integers.
#define WORD
#define PRODUCTS
#include "sums.glsl"
