#version 460
// Blends the strokes of each tile, in order. A tile has eight invocations, and four blocks of 8 x 8 pixels: an invocation has a
// column of each block in registers. Between passes, `before` and `result` have red, green and blue of each pixel: the first pass
// begins with the background, the last writes the pixels. All sums of products are fma, so that no driver fuses them in one variant
// of this text only.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"

#ifdef BOUND
layout(std430, set = 0, binding = 0) readonly buffer Strokes { uvec4 strokes[]; };
layout(std430, set = 0, binding = 1) readonly buffer Hits { uint hits[]; };
layout(std430, set = 0, binding = 2) readonly buffer Before { uint before[]; };
layout(std430, set = 0, binding = 3) buffer Result { uint result[]; };
layout(push_constant) uniform Arguments { PicturePass pass; };
uvec4 half_of_stroke(uint i) { return strokes[i]; }
#define HITS hits
#define BEFORE before
#define RESULT result
#else
layout(push_constant) uniform Arguments {
  ConstWordSpan strokes;
  ConstWordSpan hits;
  ConstWordSpan before;
  WordSpan result;
  PicturePass pass;
};
uvec4 half_of_stroke(uint i) {
  return uvec4(strokes.data.at[4 * i], strokes.data.at[4 * i + 1], strokes.data.at[4 * i + 2], strokes.data.at[4 * i + 3]);
}
#define HITS hits.data.at
#define BEFORE before.data.at
#define RESULT result.data.at
#endif

// Four pixels of a column.
struct Four {
  vec4 red;
  vec4 green;
  vec4 blue;
};
struct Column {
  Four top;
  Four bottom;
};

// A stroke as its pixels need it. Distances are in units of the width in which its edge fades.
struct Paint {
  vec2 middle;     // of the segment, in pixels
  vec2 direction;  // a pixel long
  float reach;     // from the middle to an end
  float outer;
  float opacity3;  // three times the opacity, and twice
  float opacity2;
  vec3 channels;
};

Paint paint_of(Stroke s) {
  const float fade = 1.0 / (s.outer - s.inner), size = sqrt(fma(s.along.x, s.along.x, s.along.y * s.along.y));
  const vec2 direction = size > 0.0 ? s.along / size : vec2(1.0, 0.0);
  return Paint(fma(vec2(0.5), s.along, s.from), fade * direction, 0.5 * fade * size, fade * s.outer, 3.0 * s.opacity, 2.0 * s.opacity,
               channels_of(s.color));
}
Paint no_paint() { return Paint(vec2(0.0), vec2(0.0), 0.0, 0.0, 0.0, 0.0, vec3(0.0)); }
Paint of_lane(Paint p, uint other) {
  return Paint(of_lane(p.middle, other), of_lane(p.direction, other), of_lane(p.reach, other), of_lane(p.outer, other),
               of_lane(p.opacity3, other), of_lane(p.opacity2, other), of_lane(p.channels, other));
}

// Blends four pixels, which are `along` the segment from its middle, and `aside`. The least distance is above 0 because drivers
// may compute sqrt(0) as NaN.
void blend(inout Four four, vec4 along, vec4 aside, Paint p) {
  const vec4 beyond = max(abs(along) - p.reach, 1e-6);
  const vec4 seen = clamp(p.outer - sqrt(fma(beyond, beyond, aside * aside)), 0.0, 1.0);
  const vec4 cover = seen * seen * fma(vec4(-p.opacity2), seen, vec4(p.opacity3));
  four.red = fma(cover, p.channels.x - four.red, four.red);
  four.green = fma(cover, p.channels.y - four.green, four.green);
  four.blue = fma(cover, p.channels.z - four.blue, four.blue);
}

// Blends the strokes of the lanes that `found` has. If it has none, blends a stroke that does not change these pixels. A condition
// would not be faster: lavapipe executes all branches.
void blend(inout Column column, vec2 at, uint found, Paint mine) {
  do {
    const Paint p = of_lane(mine, uint(findLSB(found)) & (lanes() - 1));
    found &= found - 1;
    const vec2 d = at - p.middle;
    const vec4 rows = vec4(0.0, 1.0, 2.0, 3.0), right = vec4(p.direction.x), down = vec4(p.direction.y);
    const vec4 along = vec4(fma(d.x, p.direction.x, d.y * p.direction.y));
    const vec4 aside = vec4(fma(d.y, p.direction.x, -d.x * p.direction.y));
    blend(column.top, fma(rows, down, along), fma(rows, right, aside), p);
    blend(column.bottom, fma(rows, down, fma(vec4(4.0), down, along)), fma(rows, right, fma(vec4(4.0), right, aside)), p);
  } while (found != 0);
}

vec3 first_color(uint x, uint y) {
#ifdef PASSES
  if (pass.first != 0) {
    const uint i = 3 * (min(y, pass.height - 1) * pass.width + min(x, pass.width - 1));
    return uintBitsToFloat(uvec3(BEFORE[i], BEFORE[i + 1], BEFORE[i + 2]));
  }
#endif
  return channels_of(pass.background);
}
Four first_four(uint x, uint y) {
  const vec3 a = first_color(x, y), b = first_color(x, y + 1), c = first_color(x, y + 2), d = first_color(x, y + 3);
  return Four(vec4(a.x, b.x, c.x, d.x), vec4(a.y, b.y, c.y, d.y), vec4(a.z, b.z, c.z, d.z));
}
Column first_column(uint x, uint y) { return Column(first_four(x, y), first_four(x, y + 4)); }

void write_pixel(uint x, uint y, vec3 c) {
  const bool exists = x < pass.width && y < pass.height;
  const uint i = y * pass.width + x;
  const uvec3 bytes = uvec3(fma(clamp(c, 0.0, 1.0), vec3(255.0), vec3(0.5)));
  // The exchange with itself keeps lavapipe from computing one pixel at a time.
  const uint pixel = of_lane(bytes.x | bytes.y << 8 | bytes.z << 16 | 0xff000000u, lane());
#ifdef PASSES
  if (exists && pass.has_next != 0) {
    RESULT[3 * i] = floatBitsToUint(c.x);
    RESULT[3 * i + 1] = floatBitsToUint(c.y);
    RESULT[3 * i + 2] = floatBitsToUint(c.z);
  }
  if (exists && pass.has_next == 0) RESULT[i] = pixel;
#else
  if (exists) RESULT[i] = pixel;
#endif
}
void write_four(uint x, uint y, Four four) {
  write_pixel(x, y, vec3(four.red.x, four.green.x, four.blue.x));
  write_pixel(x, y + 1, vec3(four.red.y, four.green.y, four.blue.y));
  write_pixel(x, y + 2, vec3(four.red.z, four.green.z, four.blue.z));
  write_pixel(x, y + 3, vec3(four.red.w, four.green.w, four.blue.w));
}
void write_column(uint x, uint y, Column column) {
  write_four(x, y, column.top);
  write_four(x, y + 4, column.bottom);
}

// Gives each lane one of the next strokes of a tile. Returns its place in the list of the bin, or ~0. Each lane has four words of
// the masks, the first lane those from `first` on. `mask` is the rest of a word, `word` the one after it, before `last`.
uint next_stroke(uvec4 masks, uint first, uint last, inout uint word, inout uint mask) {
  uint count = 0, stroke = ~0u;
  do {
    if (mask == 0) {
      mask = of_lane(masks[word & 3], (word - first) >> 2 & (lanes() - 1));
      ++word;
    }
    if (mask != 0) {
      if (lane() == count) stroke = 32 * (word - 1) + uint(findLSB(mask));
      mask &= mask - 1;
      ++count;
    }
  } while (count < lanes() && (mask != 0 || word < last));
  return stroke;
}

uint mask_at(uint masks, uint word, uint words) { return word < words ? HITS[masks + word] : 0; }

void main() {
  const uint unit = flat_unit(0), tile = unit >> 3, columns = parts_of(pass.width, 4);
  if (tile >= columns * parts_of(pass.height, 4)) return;
  const uint left = 16 * (tile % columns), y = 16 * (tile / columns), x = left + (unit & 7);
  const vec2 corner = vec2(float(left), float(y)), at = vec2(float(x), float(y)) + 0.5;
  Column a = first_column(x, y), b = first_column(x + 8, y), c = first_column(x, y + 8), d = first_column(x + 8, y + 8);

  const uint list = place_of_list(pass, (y >> 7) * parts_of(pass.width, 7) + (left >> 7));
  const uint words = pass.count == 0 ? 0 : (HITS[list] + 31) >> 5;
  const uint masks = place_of_masks(pass, tile);
  // Both loops have two exits. After a loop with one exit, lavapipe 22.3 uses values of its last iteration, even for invocations
  // that left it before. [render] fails then with LP_NATIVE_VECTOR_WIDTH=512, which has two tiles in a subgroup.
  uint first = 0;
  do {
    if (words == 0) break;
    const uint last = min(first + 4 * lanes(), words), mine = first + 4 * lane();
    const uvec4 read = uvec4(mask_at(masks, mine, words), mask_at(masks, mine + 1, words), mask_at(masks, mine + 2, words),
                             mask_at(masks, mine + 3, words));
    uint word = first, mask = 0;
    do {
      if (words == 0) break;
      const uint place = next_stroke(read, first, last, word, mask);
      Paint paint = no_paint();
      uint blocks = 0;  // a byte for each, with a bit for each lane
      if (place != ~0u) {
        const uint stroke = pass.first + HITS[list + 1 + place];
        const uvec4 one = half_of_stroke(2 * stroke), two = half_of_stroke(2 * stroke + 1);
        const vec4 ends = uintBitsToFloat(one), look = uintBitsToFloat(two);
        const Stroke s = Stroke(ends.xy, ends.zw, look.x, look.y, look.z, two.w);
        const Extent extent = extent_of(s);
        paint = paint_of(s);
        const uint upper = squares_near(extent, corner, 8.0), lower = squares_near(extent, corner + vec2(0.0, 8.0), 8.0);
        blocks = ((upper & 1) | (upper & 2) << 7 | (lower & 1) << 16 | (lower & 2) << 23) << lane();
      }
      blocks = any_of_lanes(blocks);
      blend(a, at, blocks & 255, paint);
      blend(b, at + vec2(8.0, 0.0), blocks >> 8 & 255, paint);
      blend(c, at + vec2(0.0, 8.0), blocks >> 16 & 255, paint);
      blend(d, at + 8.0, blocks >> 24, paint);
    } while (mask != 0 || word < last);
    first = last;
  } while (first < words);

  write_column(x, y, a);
  write_column(x + 8, y, b);
  write_column(x, y + 8, c);
  write_column(x + 8, y + 8, d);
}
