#version 460
// Rounds to half.
#include "narrow.glsl"
