#version 460
// Blends the strokes of each tile, in order. A tile has eight invocations, and four blocks of 8 x 8 pixels: an invocation has a
// column of each block in registers. Between passes, `before` and `result` have red, green and blue of each pixel: the first pass
// begins with the background, the last writes the pixels.
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

// A stroke as its pixels need it.
struct Paint {
  vec2 from;
  vec2 along;
  vec2 part;  // of the segment, for each pixel: along / length^2
  float fade;  // 1 / (outer - inner)
  float edge;  // outer / (outer - inner)
  float opacity;
  vec3 channels;
};

Paint paint_of(Stroke s) {
  const float fade = 1.0 / (s.outer - s.inner);
  return Paint(s.from, s.along, s.along * inverse_square(s), fade, s.outer * fade, s.opacity, channels_of(s.color));
}
Paint no_paint() { return Paint(vec2(0.0), vec2(0.0), vec2(0.0), 0.0, 0.0, 0.0, vec3(0.0)); }
Paint of_lane(Paint p, uint other) {
  return Paint(of_lane(p.from, other), of_lane(p.along, other), of_lane(p.part, other), of_lane(p.fade, other),
               of_lane(p.edge, other), of_lane(p.opacity, other), of_lane(p.channels, other));
}

// Blends four pixels, which are at x, y from the first end of the stroke. Lavapipe fuses only what the text says.
void blend(inout Four four, float x, vec4 y, Paint p) {
  const vec4 part = clamp(fma(y, vec4(p.part.y), vec4(x * p.part.x)), 0.0, 1.0);
  const vec4 dx = fma(-part, vec4(p.along.x), vec4(x)), dy = fma(-part, vec4(p.along.y), y);
  const vec4 distance = sqrt(fma(dx, dx, fma(dy, dy, vec4(1e-12))));
  const vec4 seen = clamp(fma(-distance, vec4(p.fade), vec4(p.edge)), 0.0, 1.0);
  const vec4 cover = seen * seen * fma(seen, vec4(-2.0 * p.opacity), vec4(3.0 * p.opacity));
  four.red = fma(cover, p.channels.x - four.red, four.red);
  four.green = fma(cover, p.channels.y - four.green, four.green);
  four.blue = fma(cover, p.channels.z - four.blue, four.blue);
}

// Blends the strokes of the lanes that `found` names. Without any, it blends a stroke that does not change these pixels: lavapipe
// executes all branches.
void blend(inout Column column, vec2 at, uint found, Paint mine) {
  do {
    const Paint p = of_lane(mine, uint(findLSB(found)) & (lanes() - 1));
    found &= found - 1;
    const float x = at.x - p.from.x;
    const vec4 y = at.y - p.from.y + vec4(0.0, 1.0, 2.0, 3.0);
    blend(column.top, x, y, p);
    blend(column.bottom, x, y + 4.0, p);
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
  const uvec3 bytes = uvec3(clamp(c, 0.0, 1.0) * 255.0 + 0.5);
  const uint pixel = bytes.x | bytes.y << 8 | bytes.z << 16 | 0xff000000u;
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

// Reads the next strokes of a tile, one for each lane, and returns the index of this lane's in the list of the bin, or ~0.
uint next_stroke(uint masks, uint words, inout uint word, inout uint mine, inout uint mask) {
  const uint last_lane = lanes() - 1;
  uint count = 0, stroke = ~0u;
  do {
    if (mask == 0) {
      if ((word & last_lane) == 0) mine = word + lane() < words ? HITS[masks + word + lane()] : 0;
      mask = of_lane(mine, word & last_lane);
      ++word;
    }
    if (mask != 0) {
      if (lane() == count) stroke = 32 * (word - 1) + uint(findLSB(mask));
      mask &= mask - 1;
      ++count;
    }
  } while (count <= last_lane && (mask != 0 || word < words));
  return stroke;
}

void main() {
  const uint unit = flat_unit(0), tile = unit >> 3, columns = parts_of(pass.width, 4);
  if (tile >= columns * parts_of(pass.height, 4)) return;
  const uint left = 16 * (tile % columns), y = 16 * (tile / columns), x = left + (unit & 7);
  const vec2 corner = vec2(float(left), float(y)), at = vec2(float(x), float(y)) + 0.5;
  Column a = first_column(x, y), b = first_column(x + 8, y), c = first_column(x, y + 8), d = first_column(x + 8, y + 8);

  const uint list = place_of_list(pass, (y >> 7) * parts_of(pass.width, 7) + (left >> 7));
  const uint words = pass.count == 0 ? 0 : (HITS[list] + 31) >> 5;
  uint word = 0, mine = 0, mask = 0;
  do {
    const uint place = next_stroke(place_of_masks(pass, tile), words, word, mine, mask);
    Paint paint = no_paint();
    uint upper = 0, lower = 0;
    if (place != ~0u) {
      const uint stroke = pass.first + HITS[list + 1 + place];
      const uvec4 first = half_of_stroke(2 * stroke), second = half_of_stroke(2 * stroke + 1);
      const vec4 ends = uintBitsToFloat(first), look = uintBitsToFloat(second);
      const Stroke s = Stroke(ends.xy, ends.zw, look.x, look.y, look.z, second.w);
      const Extent extent = extent_of(s);
      paint = paint_of(s);
      upper = squares_near(extent, corner, 8.0);
      lower = squares_near(extent, corner + vec2(0.0, 8.0), 8.0);
    }
    blend(a, at, lanes_with((upper & 1) != 0), paint);
    blend(b, at + vec2(8.0, 0.0), lanes_with((upper & 2) != 0), paint);
    blend(c, at + vec2(0.0, 8.0), lanes_with((lower & 1) != 0), paint);
    blend(d, at + 8.0, lanes_with((lower & 2) != 0), paint);
  } while (mask != 0 || word < words);

  write_column(x, y, a);
  write_column(x + 8, y, b);
  write_column(x, y + 8, c);
  write_column(x + 8, y + 8, d);
}
