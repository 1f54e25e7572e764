#version 450
#extension GL_GOOGLE_include_directive : require
#include "factor.glsl"
#include <item.glsl>
#ifndef TIMES
#define TIMES 1
#endif
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float s; };
void main() { if (item() < x.length()) x[item()] *= factor * s * TIMES; }
