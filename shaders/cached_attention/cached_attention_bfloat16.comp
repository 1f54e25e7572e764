#version 460
// Attention of bfloat16 to a cache of keys.
#define BFLOAT16
#include "cached_attention.glsl"
