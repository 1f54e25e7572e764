#version 460
// Sorted tiles of 16-bit elements.
#define HALF
#include "sort_scatter.glsl"
