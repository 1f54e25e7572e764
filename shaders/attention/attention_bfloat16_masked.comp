#version 460
// Attention of bfloat16 with a mask.
#define BFLOAT16
#define MASKED
#include "attention.glsl"
