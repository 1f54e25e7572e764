#version 460
// Attention of half with a mask.
#define HALF
#define MASKED
#include "attention.glsl"
