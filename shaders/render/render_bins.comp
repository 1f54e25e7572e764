#version 460
// Computes the masks of bins. Eight invocations have a square of 8 x 8 bins, a row each, and test 32 strokes.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan strokes;
  WordSpan masks;
  PicturePass pass;
};

void main() {
  const uint unit = row_unit(), words = words_of_mask(pass);
  const uint columns = parts_of(pass.width, 7), rows = parts_of(pass.height, 7), wide = parts_of(columns, 3);
  const uint square = unit / words, word = unit % words;
  const uint x = 8 * (square % wide), y = 8 * (square / wide) + row_of_unit();
  const vec2 corner = 128.0 * vec2(float(x), float(y));
  RowMasks found = no_masks();
  uint first = 0;
  do {
    const uint stroke = 32 * word + first + lane();
    const Extent mine = stroke < pass.count ? extent_of(place_of_stroke(strokes, pass.first + stroke)) : no_extent();
    add_to_masks(found, mine, corner, 128.0, first);
    first += lanes();
  } while (first < 32);
  for (uint i = 0; i < 8; ++i)
    if (x + i < columns && y < rows) masks.data.at[(y * columns + x + i) * words + word] = mask_of(found, i);
}
