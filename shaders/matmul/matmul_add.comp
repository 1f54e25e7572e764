#version 460
// c += a b over one stretch of the inner dimension.
#define ADD
#include "matmul.glsl"
