#version 460
// Prefix sums of 32-bit integers.
#define WORD
#include "scan.glsl"
