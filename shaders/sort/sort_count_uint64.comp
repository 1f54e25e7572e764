#version 460
// Counts of digits of uint64.
#define UINT64
#include "sort_count.glsl"
