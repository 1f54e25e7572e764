#version 460
// Attention of half to a cache of keys.
#define HALF
#include "cached_attention.glsl"
