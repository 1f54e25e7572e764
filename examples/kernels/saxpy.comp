#version 450
// y = a x + y, an element for each invocation.
#include "item.glsl"

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Arguments { float a; };

void main() {
  if (item() < y.length()) y[item()] += a * x[item()];
}
