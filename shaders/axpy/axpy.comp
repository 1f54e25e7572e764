#version 460
// y = a x + y. A workgroup covers 1024 adjacent elements, an invocation four of them, 256 apart. Adjacent
// invocations load adjacent elements.
#include "span.glsl"
#include "flat.glsl"

layout(push_constant) uniform Arguments {
  float a;
  ConstFloatSpan x;
  FloatSpan y;
};

// Returns a x + y. Drivers may round the product separately; it may then overflow even if the sum does not.
// Products of quarters overflow only if the sum does. They are exact, because x and y are large in that case.
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
