#version 460
// to = from. A workgroup covers 1024 adjacent elements.
#include "span.glsl"
#include "flat.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan from;
  FloatSpan to;
};

void main() {
  const uvec2 first = flat_item(gl_WorkGroupID.x * 1024);
  ConstFloats source = ConstFloats(element(uvec2(from.data), first));
  Floats target = Floats(element(uvec2(to.data), first));
  for (uint i = gl_LocalInvocationID.x; i < 1024; i += 256)
    if (is_less(plus(first, uvec2(i, 0)), to.size)) target.at[i] = source.at[i];
}
