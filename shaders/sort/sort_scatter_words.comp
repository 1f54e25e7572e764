#version 460
// Sorted tiles of 32-bit elements.
#define WORD
#include "sort_scatter.glsl"
