#pragma once
// Declarations that the kernels of render share. `render.glsl` describes strokes and masks. `hits` has for each tile of 16 x 16
// pixels a number, and so many pairs: the index of a word of its mask, and the word.
#include "flat.cuh"

struct Stroke {
  float x, y;              // of one end
  float along_x, along_y;  // to the other
  float inner, outer;
  float opacity;
  unsigned color;
};

struct PicturePass {
  unsigned width;
  unsigned height;
  unsigned first;
  unsigned count;
  unsigned background;
  unsigned has_next;
};

__device__ unsigned parts_of(unsigned size, unsigned log2) { return (size + (1u << log2) - 1) >> log2; }
__device__ unsigned words_of_mask(PicturePass pass) { return (pass.count + 31) >> 5; }

// Strokes are aligned to four bytes.
__device__ const Stroke& stroke_at(wye_span<const unsigned> strokes, unsigned stroke) {
  return reinterpret_cast<const Stroke*>(strokes.data)[stroke];
}
__device__ void write_stroke(wye_span<unsigned> strokes, unsigned stroke, Stroke s) {
  reinterpret_cast<Stroke*>(strokes.data)[stroke] = s;
}
__device__ Stroke no_stroke() { return {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, -1.0f, 0.0f, 0u}; }

// Returns 1 / length^2 of the segment, or 0 for a point.
__device__ float inverse_square(const Stroke& s) {
  const float square = fmaf(s.along_x, s.along_x, s.along_y * s.along_y);
  return square > 0.0f ? 1.0f / square : 0.0f;
}

// Returns the square of the distance between a stroke's segment and the point at x, y from its first end.
__device__ float square_of_distance(const Stroke& s, float inverse, float x, float y) {
  const float part = fminf(fmaxf(fmaf(x, s.along_x, y * s.along_y) * inverse, 0.0f), 1.0f);
  const float dx = fmaf(-part, s.along_x, x), dy = fmaf(-part, s.along_y, y);
  return fmaf(dx, dx, dy * dy);
}

// Returns whether a stroke may cover pixels of the square of `side` pixels from x, y on.
__device__ bool is_near(const Stroke& s, float x, float y, float side) {
  const float reach = fmaf(0.7072f, side, s.outer);
  return s.outer > 0.0f && square_of_distance(s, inverse_square(s), x + 0.5f * side - s.x, y + 0.5f * side - s.y) <=
                               reach * reach;
}

struct Channels {
  float red, green, blue;
};
__device__ Channels channels_of(unsigned color) {
  constexpr float unit = 1.0f / 1023.0f;
  return {float(color & 1023u) * unit, float(color >> 10 & 1023u) * unit, float(color >> 20 & 1023u) * unit};
}

__device__ float unit_range(float v) { return fminf(fmaxf(v, 0.0f), 1.0f); }
__device__ unsigned ten_bits(float v) { return unsigned(fmaf(unit_range(v), 1023.0f, 0.5f)); }
__device__ unsigned color_of(Channels c) { return ten_bits(c.red) | ten_bits(c.green) << 10 | ten_bits(c.blue) << 20; }

__device__ bool is_place(float x, float y) { return fabsf(x) <= 1048576.0f && fabsf(y) <= 1048576.0f; }  // 2^20

// Returns sin(2 pi turns).
__device__ float sine_of_turns(float turns) {
  float u = turns - floorf(turns + 0.5f);
  u = u > 0.25f ? 0.5f - u : u < -0.25f ? -0.5f - u : u;
  const float x = 6.283185307f * u, square = x * x;
  float sum = fmaf(square, -2.5052108e-8f, 2.7557319e-6f);
  sum = fmaf(square, sum, -1.9841270e-4f);
  sum = fmaf(square, sum, 8.3333333e-3f);
  sum = fmaf(square, sum, -1.6666667e-1f);
  return x * fmaf(square, sum, 1.0f);
}
