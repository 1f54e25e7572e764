#version 460
// Transposes matrices of elements of 16 bits.
#define ELEMENT_LOG2 1
#include "transpose.glsl"
