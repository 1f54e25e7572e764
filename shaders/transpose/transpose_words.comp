#version 460
// Transposes matrices of elements of 32 bits.
#define ELEMENT_LOG2 2
#include "transpose.glsl"
