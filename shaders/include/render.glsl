// Declarations that the kernels of render share. Pictures consist of strokes: segments of lines with round ends, in pixels.
// A stroke has eight words: x and y of one end, the vector to the other, the distances between which its edge fades, its
// opacity and its color, 10 bits for each channel. Points are strokes without length. A negative `outer` marks strokes that are
// not drawn. `masks` has a bit for each bin of 128 x 128 pixels and stroke of the pass. `hits` has a list of the strokes of each
// bin: their number and their indexes in the pass. Then it has a bit for each tile of 16 x 16 pixels and stroke of its bin.
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
  uint has_next;
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

// The place of a stroke. It does not cover pixels beyond its reach, which has a quarter of a pixel for rounding errors.
struct Extent {
  vec2 from;
  float low;    // y
  float high;
  float along;  // x to the other end
  float slope;  // 1 / y to the other end, or 0 if the stroke is level
  float reach;
};

Extent extent_of(Stroke s) {
  const bool is_level = abs(s.along.y) < 0.001;
  return Extent(s.from, min(s.along.y, 0.0), max(s.along.y, 0.0), s.along.x, is_level ? 0.0 : 1.0 / s.along.y,
                s.outer > 0.0 ? s.outer + 0.25 : -1.0);
}

// Returns a bit for each square of `side` pixels in a row of eight from `corner` on, of which the stroke may cover a pixel's
// centre. The part of the segment that is within reach of the row gives the first and the last of them.
uint squares_near(Extent e, vec2 corner, float side) {
  const float top = corner.y + 0.5 - e.reach - e.from.y, bottom = corner.y + side - 0.5 + e.reach - e.from.y;
  const float a = e.slope == 0.0 ? 0.0 : clamp(top * e.slope, 0.0, 1.0);
  const float b = e.slope == 0.0 ? 1.0 : clamp(bottom * e.slope, 0.0, 1.0);
  const float x = e.from.x - corner.x, xa = x + a * e.along, xb = x + b * e.along;
  // The last pixel of the square before `first` is left of the stroke. Conversions to integers round toward zero.
  const float left = (min(xa, xb) - e.reach + 0.5) / side, right = (max(xa, xb) + e.reach - 0.5) / side;
  const int first = int(clamp(left, 0.0, 8.0)), last = int(clamp(right, -1.0, 7.0) + 1.0) - 1;
  const bool is_near = e.reach > 0.0 && e.high >= top && e.low <= bottom && first <= last;
  return is_near ? (2u << max(last, 0)) - (1u << first) : 0u;
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

// Eight adjacent invocations share a square of bins, a bin or a tile, and its strokes.
#define SHARING 8u
#include "lanes.glsl"
// Returns the bits that any lane has.
#ifdef SUBGROUPS
uint any_of_lanes(uint bits) {
  const uint last_lane = lanes() - 1;
  bits |= exchanged(bits, 1 & last_lane);
  bits |= exchanged(bits, 2 & last_lane);
  return bits | exchanged(bits, 4 & last_lane);
}
#else
uint any_of_lanes(uint bits) { return bits; }
#endif

// Return the index of the square or bin of this invocation, and the index of its row in it. Flat grids of them have one row.
uint row_unit() { return (gl_WorkGroupID.x * gl_WorkGroupSize.x + invocation_index()) >> 3; }
uint row_of_unit() { return invocation_index() & 7; }

Extent no_extent() { return Extent(vec2(0.0), 0.0, 0.0, 0.0, 0.0, -1.0); }
Extent of_lane(Extent e, uint other) {
  return Extent(of_lane(e.from, other), of_lane(e.low, other), of_lane(e.high, other), of_lane(e.along, other),
                of_lane(e.slope, other), of_lane(e.reach, other));
}

// A mask for each part of a row of eight.
struct RowMasks {
  uvec4 low;
  uvec4 high;
};
RowMasks no_masks() { return RowMasks(uvec4(0), uvec4(0)); }
uint mask_of(RowMasks masks, uint part) { return part < 4 ? masks.low[part] : masks.high[part - 4]; }

// Adds a bit for the stroke of each lane, from bit `first` on.
void add_to_masks(inout RowMasks masks, Extent mine, vec2 corner, float side, uint first) {
  uint other = 0;
  do {
    const uint near = squares_near(of_lane(mine, other), corner, side);
    masks.low |= (uvec4(near) >> uvec4(0, 1, 2, 3) & 1) << (first + other);
    masks.high |= (uvec4(near) >> uvec4(4, 5, 6, 7) & 1) << (first + other);
  } while (++other < lanes());
}

// Return the place of the list of a bin, and of the masks of a tile.
uint place_of_list(PicturePass pass, uint bin) { return bin * (1 + 32 * words_of_mask(pass)); }
uint place_of_masks(PicturePass pass, uint tile) {
  return place_of_list(pass, parts_of(pass.width, 7) * parts_of(pass.height, 7)) + tile * words_of_mask(pass);
}
