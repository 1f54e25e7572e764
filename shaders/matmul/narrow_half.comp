#version 460
// To half.
#include "narrow.glsl"
