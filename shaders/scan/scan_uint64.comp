#version 460
// Prefix sums of uint64.
#define UINT64
#include "scan.glsl"
