#version 460
// Transposes matrices of int32.
#define ELEMENT_LOG2 2
#define ELEMENT int
#include "transpose.glsl"
