#version 460
// Multiplies rows of float.
#include "scale.glsl"
