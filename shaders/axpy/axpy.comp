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

// a x + y. Drivers may round the product on its own, which then overflows where the sum does not. Quarters do not overflow
// unless the sum does, and x and y are large then: they are exact.
float multiple_added(float x, float y) {
  precise const float product = a * x;
  if ((floatBitsToUint(product) & 0x7f800000) != 0x7f800000) return fma(a, x, y);
  precise const float quarter = a * (x * 0.25) + y * 0.25;
  return 4.0 * quarter;
}

void main() {
  const uvec2 first = flat_item(gl_WorkGroupID.x * 1024);
  ConstFloats from = ConstFloats(element(uvec2(x.data), first));
  Floats to = Floats(element(uvec2(y.data), first));
  for (uint i = gl_LocalInvocationID.x; i < 1024; i += 256)
    if (is_less(plus(first, uvec2(i, 0)), y.size)) to.at[i] = multiple_added(from.at[i], to.at[i]);
}
