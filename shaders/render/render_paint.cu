// Blends the strokes of each tile, in order. A block has a tile, a thread has a pixel. Between passes, `before` and
// `result` have red, green and blue of each pixel.
#include "render.cuh"

__device__ unsigned byte_of(float v) { return unsigned(fmaf(unit_range(v), 255.0f, 0.5f)); }

extern "C" __global__ void __launch_bounds__(256)
    wye_render_paint(wye_span<const unsigned> strokes, wye_span<const unsigned> hits, wye_span<const unsigned> before,
                     wye_span<unsigned> result, PicturePass pass) {
  const unsigned tile = unsigned(flat_block()), columns = parts_of(pass.width, 4);
  if (tile >= columns * parts_of(pass.height, 4)) return;
  const unsigned x = 16 * (tile % columns) + (threadIdx.x & 15), y = 16 * (tile / columns) + (threadIdx.x >> 4);
  if (x >= pass.width || y >= pass.height) return;
  const Size pixel = Size(y) * pass.width + x;
  Channels c = channels_of(pass.background);
  if (before.size != 0)
    c = {__uint_as_float(before[3 * pixel]), __uint_as_float(before[3 * pixel + 1]), __uint_as_float(before[3 * pixel + 2])};

  const unsigned* const pairs = hits.data + Size(tile) * (1 + 2 * words_of_mask(pass));
  for (unsigned i = 0; i < pairs[0]; ++i) {
    const unsigned first = pass.first + 32 * pairs[1 + 2 * i];
    for (unsigned mask = pairs[2 + 2 * i]; mask != 0; mask &= mask - 1) {
      const Stroke s = stroke_at(strokes, first + unsigned(__ffs(int(mask))) - 1);
      const float square = square_of_distance(s, inverse_square(s), float(x) + 0.5f - s.x, float(y) + 0.5f - s.y);
      const float faded = unit_range((sqrtf(square) - s.inner) / (s.outer - s.inner));
      const float cover = s.opacity * (1.0f - faded * faded * (3.0f - 2.0f * faded));
      const Channels paint = channels_of(s.color);
      c.red = fmaf(cover, paint.red - c.red, c.red);
      c.green = fmaf(cover, paint.green - c.green, c.green);
      c.blue = fmaf(cover, paint.blue - c.blue, c.blue);
    }
  }

  if (pass.has_next == 0) {
    result[pixel] = byte_of(c.red) | byte_of(c.green) << 8 | byte_of(c.blue) << 16 | 0xff000000u;
  } else {
    result[3 * pixel] = __float_as_uint(c.red);
    result[3 * pixel + 1] = __float_as_uint(c.green);
    result[3 * pixel + 2] = __float_as_uint(c.blue);
  }
}
