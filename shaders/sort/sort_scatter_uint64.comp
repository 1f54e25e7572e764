#version 460
// Sorted tiles of uint64.
#define UINT64
#include "sort_scatter.glsl"
