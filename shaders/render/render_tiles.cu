// Lists the strokes of each tile, from the mask of its bin. A thread has a tile.
#include "render.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_render_tiles(wye_span<const unsigned> strokes, wye_span<const unsigned> masks, wye_span<unsigned> hits,
                     PicturePass pass) {
  const unsigned tile = unsigned(flat_thread()), columns = parts_of(pass.width, 4), words = words_of_mask(pass);
  if (tile >= columns * parts_of(pass.height, 4)) return;
  const unsigned x = tile % columns, y = tile / columns;
  const unsigned* const of_bin = masks.data + Size(words) * ((y >> 3) * parts_of(pass.width, 7) + (x >> 3));
  unsigned* const pairs = hits.data + Size(tile) * (1 + 2 * words);
  unsigned count = 0;
  for (unsigned w = 0; w < words; ++w) {
    unsigned mask = of_bin[w], hit = 0;
    while (mask != 0) {
      const unsigned bit = unsigned(__ffs(int(mask))) - 1;
      mask &= mask - 1;
      if (is_near(stroke_at(strokes, pass.first + 32 * w + bit), 16.0f * float(x), 16.0f * float(y), 16.0f))
        hit |= 1u << bit;
    }
    if (hit != 0) {
      pairs[1 + 2 * count] = w;
      pairs[2 + 2 * count] = hit;
      ++count;
    }
  }
  pairs[0] = count;
}
