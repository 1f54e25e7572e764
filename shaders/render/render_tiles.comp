#version 460
// Lists the strokes of each tile, from the mask of its bin. An invocation has a tile.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan strokes;
  ConstWordSpan masks;
  WordSpan hits;
  PicturePass pass;
};

void main() {
  const uint tile = flat_unit(0), columns = parts_of(pass.width, 4), words = words_of_mask(pass);
  if (tile >= columns * parts_of(pass.height, 4)) return;
  const uint x = tile % columns, y = tile / columns;
  const vec2 corner = 16.0 * vec2(float(x), float(y));
  const uint of_bin = words * ((y >> 3) * parts_of(pass.width, 7) + (x >> 3));
  const uint place = tile * (1 + 2 * words);
  uint pairs = 0;
  for (uint w = 0; w < words; ++w) {
    uint mask = masks.data.at[of_bin + w], hit = 0;
    while (mask != 0) {
      const uint bit = uint(findLSB(mask));
      mask &= mask - 1;
      if (is_near(place_of_stroke(strokes, pass.first + 32 * w + bit), corner, 16.0)) hit |= 1u << bit;
    }
    if (hit != 0) {
      hits.data.at[place + 1 + 2 * pairs] = w;
      hits.data.at[place + 2 + 2 * pairs] = hit;
      ++pairs;
    }
  }
  hits.data.at[place] = pairs;
}
