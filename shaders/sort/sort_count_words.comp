#version 460
// Counts of digits of 32-bit elements.
#define WORD
#include "sort_count.glsl"
