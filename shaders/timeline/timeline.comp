#version 460
// Places evidence on a timeline: its importance fades with its distance from now.
#include "span.glsl"
#include "flat.glsl"
#include "float_bits.glsl"
#include "placed.glsl"

struct Evidence {
  float timestamp;
  float importance;
  uint category;
  float relevance;
};
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstEvidence { Evidence at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer PlacedPoints { Placed at[]; };
struct EvidenceSpan {
  ConstEvidence data;
  uvec2 size;
};
struct PlacedSpan {
  PlacedPoints data;
  uvec2 size;
};

layout(push_constant) uniform Arguments {
  EvidenceSpan evidence;
  PlacedSpan points;
  float now;
  float decay;
};

// Returns importance exp(-x) for x >= 0, infinite or NaN. Returns 0 for x > 87, even if the importance is
// infinite.
float faded(float importance, float x) {
  if (is_nan(importance) || is_nan(x)) return uintBitsToFloat(0x7fc00000);
  return x > 87.0 ? 0.0 : importance * exp(-x);
}

void main() {
  const uint x = gl_GlobalInvocationID.x;
  const uvec2 item = flat_item(x);
  if (!is_less(item, points.size)) return;
  const uvec2 first = flat_item(0);
  // An element of 16 bytes is four elements of 4 bytes.
  const uvec2 row = uvec2(first.x << 2, first.y << 2 | first.x >> 30);
  const Evidence e = ConstEvidence(element(uvec2(evidence.data), row)).at[x];
  const float importance = faded(e.importance, decay * abs(now - e.timestamp));
  PlacedPoints(element(uvec2(points.data), row)).at[x] =
      Placed(e.timestamp, importance, e.relevance, e.category);
}
