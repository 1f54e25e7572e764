#version 460
// Products of floats with quantized weights.
#include "quantized_matmul.glsl"
