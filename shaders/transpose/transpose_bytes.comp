#version 460
// Transposes matrices of elements of 8 bits.
#define ELEMENT_LOG2 0
#include "transpose.glsl"
