#version 460
// Means of segments of rows of float.
#include "segment_mean.glsl"
