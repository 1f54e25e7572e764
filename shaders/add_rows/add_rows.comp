#version 460
// Adds rows of float.
#include "add_rows.glsl"
