#version 460
// Products of blocks q8_0 with quantized weights.
#define INT8_X
#include "quantized_matmul.glsl"
