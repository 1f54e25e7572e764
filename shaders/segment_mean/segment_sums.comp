#version 460
// Sums of stretches of rows of float.
#include "segment_sums.glsl"
