#version 460
// Prefix sums of half.
#define HALF
#include "scan.glsl"
