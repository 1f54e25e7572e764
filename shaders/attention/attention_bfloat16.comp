#version 460
// Attention of bfloat16.
#define BFLOAT16
#include "attention.glsl"
