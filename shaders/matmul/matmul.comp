#version 460
// Products of float32.
#include "matmul.glsl"
