#version 460
// Selected elements of 32-bit elements.
#define WORD
#include "top_k.glsl"
