// Computes the masks of bins: a thread tests 32 strokes.
#include "render.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_render_bins(wye_span<const unsigned> strokes, wye_span<unsigned> masks, PicturePass pass) {
  const unsigned words = words_of_mask(pass), columns = parts_of(pass.width, 7);
  const unsigned i = unsigned(flat_thread()), bin = i / words, first = 32 * (i % words);
  if (bin >= columns * parts_of(pass.height, 7)) return;
  const float x = 128.0f * float(bin % columns), y = 128.0f * float(bin / columns);
  const unsigned count = min(pass.count - first, 32u);
  unsigned mask = 0;
  for (unsigned k = 0; k < count; ++k)
    if (is_near(stroke_at(strokes, pass.first + first + k), x, y, 128.0f)) mask |= 1u << k;
  masks[i] = mask;
}
