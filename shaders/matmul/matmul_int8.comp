#version 460
// Products of int8.
#define INT8
#include "matmul.glsl"
