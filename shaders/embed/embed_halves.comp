#version 460
// Rows of a table with elements of 16 bits.
#define HALF
#include "embed.glsl"
