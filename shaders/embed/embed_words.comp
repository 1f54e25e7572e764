#version 460
// Rows of a table with elements of 32 bits.
#define WORD
#include "embed.glsl"
