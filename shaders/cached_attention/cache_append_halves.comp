#version 460
// Appends keys and values of 16 bits.
#define HALF
#include "cache_append.glsl"
