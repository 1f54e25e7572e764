// Declarations that the kernels of render share. Pictures consist of strokes: segments of lines with round ends, in pixels.
// A stroke has eight words: x and y of one end, the vector to the other, the distances between which its edge fades, its
// opacity and its color, 10 bits for each channel. Points are strokes without length. A negative `outer` marks strokes that are
// not drawn. `masks` has a bit for each bin of 128 x 128 pixels and stroke of the pass. `hits` has for each tile of 16 x 16
// pixels a number, and so many pairs: the index of a word of its mask, and the word.
#include "float_bits.glsl"

struct Stroke {
  vec2 from;
  vec2 along;
  float inner;
  float outer;
  float opacity;
  uint color;
};

struct PicturePass {
  uint width;
  uint height;
  uint first;
  uint count;
  uint background;
};

const uint words_of_stroke = 8;

// Returns the number of parts of `size` pixels, each of 2^log2.
uint parts_of(uint size, uint log2) { return (size + (1u << log2) - 1) >> log2; }
uint words_of_mask(PicturePass pass) { return (pass.count + 31) >> 5; }

// Returns a stroke without its opacity and color, which are 0.
Stroke place_of_stroke(ConstWordSpan strokes, uint stroke) {
  const uint i = words_of_stroke * stroke;
  return Stroke(vec2(uintBitsToFloat(strokes.data.at[i]), uintBitsToFloat(strokes.data.at[i + 1])),
                vec2(uintBitsToFloat(strokes.data.at[i + 2]), uintBitsToFloat(strokes.data.at[i + 3])),
                uintBitsToFloat(strokes.data.at[i + 4]), uintBitsToFloat(strokes.data.at[i + 5]), 0.0, 0u);
}

void write_stroke(WordSpan strokes, uint stroke, Stroke s) {
  const uint i = words_of_stroke * stroke;
  strokes.data.at[i] = floatBitsToUint(s.from.x);
  strokes.data.at[i + 1] = floatBitsToUint(s.from.y);
  strokes.data.at[i + 2] = floatBitsToUint(s.along.x);
  strokes.data.at[i + 3] = floatBitsToUint(s.along.y);
  strokes.data.at[i + 4] = floatBitsToUint(s.inner);
  strokes.data.at[i + 5] = floatBitsToUint(s.outer);
  strokes.data.at[i + 6] = floatBitsToUint(s.opacity);
  strokes.data.at[i + 7] = s.color;
}

Stroke no_stroke() { return Stroke(vec2(0.0), vec2(0.0), 0.0, -1.0, 0.0, 0u); }

// Returns 1 / length^2 of the segment, or 0 for a point.
float inverse_square(Stroke s) {
  const float square = dot(s.along, s.along);
  return square > 0.0 ? 1.0 / square : 0.0;
}

// Returns whether a stroke may cover pixels of the square of `side` pixels from `corner` on.
bool is_near(Stroke s, vec2 corner, float side) {
  const vec2 v = corner + 0.5 * side - s.from;
  const vec2 d = v - clamp(dot(v, s.along) * inverse_square(s), 0.0, 1.0) * s.along;
  const float reach = s.outer + 0.7072 * side;
  return s.outer > 0.0 && dot(d, d) <= reach * reach;
}

vec3 channels_of(uint color) {
  return vec3(float(color & 1023), float(color >> 10 & 1023), float(color >> 20 & 1023)) * (1.0 / 1023.0);
}
uint color_of(vec3 channels) {
  const uvec3 c = uvec3(clamp(channels, 0.0, 1.0) * 1023.0 + 0.5);
  return c.x | c.y << 10 | c.z << 20;
}

bool is_place(vec2 at) { return is_below(at.x, 1048576.0) && is_below(at.y, 1048576.0); }  // 2^20

// Returns sin(2 pi turns). The built-in function is too inexact for positions.
float sine_of_turns(float turns) {
  float u = turns - floor(turns + 0.5);
  u = u > 0.25 ? 0.5 - u : u < -0.25 ? -0.5 - u : u;
  const float x = 6.283185307 * u, square = x * x;
  return x * (1.0 + square * (-1.6666667e-1 + square * (8.3333333e-3 + square * (-1.9841270e-4 +
              square * (2.7557319e-6 + square * -2.5052108e-8)))));
}
