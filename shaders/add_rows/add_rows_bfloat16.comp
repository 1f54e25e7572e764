#version 460
// Adds rows of bfloat16.
#define BFLOAT16
#include "add_rows.glsl"
