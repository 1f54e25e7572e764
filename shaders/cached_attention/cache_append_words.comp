#version 460
// Appends keys and values of 32 bits.
#define WORD
#include "cache_append.glsl"
