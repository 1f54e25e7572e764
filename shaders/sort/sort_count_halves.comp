#version 460
// Counts of digits of 16-bit elements.
#define HALF
#include "sort_count.glsl"
