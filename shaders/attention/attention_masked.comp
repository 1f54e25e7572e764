#version 460
// Attention of float32 with a mask.
#define MASKED
#include "attention.glsl"
