#version 460
// Lists the strokes of each bin, then computes masks of its tiles. Eight invocations have a bin, a row of its tiles each.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan strokes;
  ConstWordSpan masks;
  WordSpan hits;
  PicturePass pass;
};

// Lists the strokes of a bin and returns their number. Each invocation writes what it reads afterwards.
uint list_strokes(uint bin, uint list) {
  const uint words = words_of_mask(pass), last_lane = lanes() - 1;
  uint count = 0, word = 0, mine = 0;
  do {
    if ((word & last_lane) == 0) mine = word + lane() < words ? masks.data.at[bin * words + word + lane()] : 0;
    uint mask = of_lane(mine, word & last_lane);
    do {
      if (mask != 0 && lane() == (count & last_lane)) hits.data.at[list + 1 + count] = 32 * word + uint(findLSB(mask));
      count += mask != 0 ? 1 : 0;
      mask &= mask - 1;
    } while (mask != 0);
  } while (++word < words);
  hits.data.at[list] = count;
  return count;
}

void main() {
  const uint bin = row_unit(), words = words_of_mask(pass), columns = parts_of(pass.width, 7);
  if (bin >= columns * parts_of(pass.height, 7)) return;
  const uint tiles_wide = parts_of(pass.width, 4), tiles_high = parts_of(pass.height, 4);
  const uint x = 8 * (bin % columns), y = 8 * (bin / columns) + row_of_unit();
  const vec2 corner = 16.0 * vec2(float(x), float(y));
  const uint list = place_of_list(pass, bin), count = words == 0 ? 0 : list_strokes(bin, list);
  uint word = 0;
  do {
    RowMasks found = no_masks();
    uint first = 0;
    do {
      const uint place = 32 * word + first + lane();
      Extent mine = no_extent();
      if (place < count) mine = extent_of(place_of_stroke(strokes, pass.first + hits.data.at[list + 1 + place]));
      add_to_masks(found, mine, corner, 16.0, first);
      first += lanes();
    } while (first < 32);
    for (uint i = 0; i < 8; ++i)
      if (x + i < tiles_wide && y < tiles_high && 32 * word < count)
        hits.data.at[place_of_masks(pass, y * tiles_wide + x + i) + word] = mask_of(found, i);
    ++word;
  } while (32 * word < count);
}
