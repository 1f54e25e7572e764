#version 460
// Norms of float.
#include "norm.glsl"
