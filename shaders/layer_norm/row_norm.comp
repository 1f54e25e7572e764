#version 460
// Norms of rows of float.
#include "layer_norm.glsl"
