#version 460
// Selected elements of 16-bit elements.
#define HALF
#include "top_k.glsl"
