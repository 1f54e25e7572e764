#version 460
// Computes the masks of bins: an invocation tests 32 strokes.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan strokes;
  WordSpan masks;
  PicturePass pass;
};

void main() {
  const uint i = flat_unit(0), words = words_of_mask(pass), columns = parts_of(pass.width, 7);
  const uint bin = i / words, first = 32 * (i % words);
  if (bin >= columns * parts_of(pass.height, 7)) return;
  const vec2 corner = 128.0 * vec2(float(bin % columns), float(bin / columns));
  const uint count = min(pass.count - first, 32u);
  uint mask = 0;
  for (uint k = 0; k < count; ++k)
    if (is_near(place_of_stroke(strokes, pass.first + first + k), corner, 128.0)) mask |= 1u << k;
  masks.data.at[i] = mask;
}
