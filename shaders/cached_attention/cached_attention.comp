#version 460
// Attention of float to a cache of keys.
#include "cached_attention.glsl"
