#version 460
// Sums of float.
#include "sums.glsl"
