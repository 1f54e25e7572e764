#version 460
// Extremes of float.
#include "extremes.glsl"
