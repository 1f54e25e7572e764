#version 460
// Attention of half.
#define HALF
#include "attention.glsl"
