#version 460
// Sums of products of float.
#define PRODUCTS
#include "sums.glsl"
