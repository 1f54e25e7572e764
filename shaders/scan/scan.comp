#version 460
// Prefix sums of float.
#include "scan.glsl"
