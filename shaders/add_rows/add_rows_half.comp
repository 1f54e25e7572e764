#version 460
// Adds rows of half.
#define HALF
#include "add_rows.glsl"
