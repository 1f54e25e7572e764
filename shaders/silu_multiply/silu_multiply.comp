#version 460
// Products of SiLU and numbers of float.
#include "silu_multiply.glsl"
