#version 460
// Transposes matrices of float.
#define ELEMENT_LOG2 2
#define ELEMENT float
#include "transpose.glsl"
