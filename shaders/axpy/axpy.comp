#version 460
// y = a x + y. A workgroup covers 1024 neighbouring elements, an invocation four of them that lie 256 apart, so that
// neighbours load neighbours.
#include "span.glsl"
#include "flat.glsl"

layout(push_constant) uniform Arguments {
  float a;
  ConstFloatSpan x;
  FloatSpan y;
};

void main() {
  const uvec2 first = flat_item(gl_WorkGroupID.x * 1024);
  ConstFloats from = ConstFloats(element(uvec2(x.data), first));
  Floats to = Floats(element(uvec2(y.data), first));
  for (uint i = gl_LocalInvocationID.x; i < 1024; i += 256)
    if (is_less(plus(first, uvec2(i, 0)), y.size)) to.at[i] = fma(a, from.at[i], to.at[i]);
}
