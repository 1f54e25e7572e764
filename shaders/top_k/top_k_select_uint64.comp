#version 460
// Selected elements of uint64.
#define UINT64
#include "top_k.glsl"
