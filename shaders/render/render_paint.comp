#version 460
// Blends the strokes of each tile, in order. An invocation has 8 x 4 pixels in registers, and a tile has eight invocations: the
// loads of a stroke serve many pixels. Between passes, `before` and `after` have red, green and blue of each pixel: the first
// pass begins with the background, the last writes the pixels.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan strokes;
  ConstWordSpan hits;
  ConstFloatSpan before;
  FloatSpan after;
  WordSpan pixels;
  PicturePass pass;
};

// Four pixels of a row.
struct Four {
  vec4 red;
  vec4 green;
  vec4 blue;
};

// A stroke, with numbers that its pixels share.
struct Paint {
  Stroke stroke;
  float inverse;  // 1 / length^2
  float fade;     // 1 / (outer - inner)
  vec3 channels;
};

Paint paint_of(uint stroke) {
  Paint p;
  p.stroke = place_of_stroke(strokes, stroke);
  p.stroke.opacity = uintBitsToFloat(strokes.data.at[words_of_stroke * stroke + 6]);
  p.channels = channels_of(strokes.data.at[words_of_stroke * stroke + 7]);
  p.inverse = inverse_square(p.stroke);
  p.fade = 1.0 / (p.stroke.outer - p.stroke.inner);
  return p;
}

// Blends four pixels from `corner` on.
void blend(inout Four four, vec2 corner, Paint p) {
  const vec4 x = corner.x + vec4(0.5, 1.5, 2.5, 3.5) - p.stroke.from.x;
  const float y = corner.y + 0.5 - p.stroke.from.y;
  const vec4 part = clamp((x * p.stroke.along.x + y * p.stroke.along.y) * p.inverse, 0.0, 1.0);
  const vec4 dx = x - part * p.stroke.along.x, dy = y - part * p.stroke.along.y;
  const vec4 faded = clamp((sqrt(max(dx * dx + dy * dy, 1e-12)) - p.stroke.inner) * p.fade, 0.0, 1.0);
  const vec4 cover = p.stroke.opacity * (1.0 - faded * faded * (3.0 - 2.0 * faded));
  four.red += cover * (p.channels.x - four.red);
  four.green += cover * (p.channels.y - four.green);
  four.blue += cover * (p.channels.z - four.blue);
}

uint sum_place(uint x, uint y) { return 3 * (y * pass.width + x); }

vec3 pixel_before(uint x, uint y) {
  if (x >= pass.width || y >= pass.height) return vec3(0.0);
  const uint i = sum_place(x, y);
  return vec3(before.data.at[i], before.data.at[i + 1], before.data.at[i + 2]);
}

Four four_at(uint x, uint y) {
  if (before.size == uvec2(0)) {
    const vec3 c = channels_of(pass.background);
    return Four(vec4(c.x), vec4(c.y), vec4(c.z));
  }
  const vec3 a = pixel_before(x, y), b = pixel_before(x + 1, y), c = pixel_before(x + 2, y), d = pixel_before(x + 3, y);
  return Four(vec4(a.x, b.x, c.x, d.x), vec4(a.y, b.y, c.y, d.y), vec4(a.z, b.z, c.z, d.z));
}

void write_pixel(uint x, uint y, vec3 c) {
  if (x >= pass.width || y >= pass.height) return;
  if (after.size == uvec2(0)) {
    const uvec3 bytes = uvec3(clamp(c, 0.0, 1.0) * 255.0 + 0.5);
    pixels.data.at[y * pass.width + x] = bytes.x | bytes.y << 8 | bytes.z << 16 | 0xff000000u;
  } else {
    const uint i = sum_place(x, y);
    after.data.at[i] = c.x;
    after.data.at[i + 1] = c.y;
    after.data.at[i + 2] = c.z;
  }
}

void write_four(uint x, uint y, Four four) {
  write_pixel(x, y, vec3(four.red.x, four.green.x, four.blue.x));
  write_pixel(x + 1, y, vec3(four.red.y, four.green.y, four.blue.y));
  write_pixel(x + 2, y, vec3(four.red.z, four.green.z, four.blue.z));
  write_pixel(x + 3, y, vec3(four.red.w, four.green.w, four.blue.w));
}

void main() {
  const uint unit = flat_unit(0), tile = unit >> 3, block = unit & 7, columns = parts_of(pass.width, 4);
  if (tile >= columns * parts_of(pass.height, 4)) return;
  const uint x = 16 * (tile % columns) + 8 * (block & 1), y = 16 * (tile / columns) + 4 * (block >> 1);
  const vec2 corner = vec2(float(x), float(y));
  Four a0 = four_at(x, y), b0 = four_at(x + 4, y), a1 = four_at(x, y + 1), b1 = four_at(x + 4, y + 1);
  Four a2 = four_at(x, y + 2), b2 = four_at(x + 4, y + 2), a3 = four_at(x, y + 3), b3 = four_at(x + 4, y + 3);

  const uint place = tile * (1 + 2 * words_of_mask(pass)), pairs = hits.data.at[place];
  for (uint i = 0; i < pairs; ++i) {
    const uint first = pass.first + 32 * hits.data.at[place + 1 + 2 * i];
    uint mask = hits.data.at[place + 2 + 2 * i];
    while (mask != 0) {
      const Paint p = paint_of(first + uint(findLSB(mask)));
      mask &= mask - 1;
      blend(a0, corner, p);
      blend(b0, corner + vec2(4.0, 0.0), p);
      blend(a1, corner + vec2(0.0, 1.0), p);
      blend(b1, corner + vec2(4.0, 1.0), p);
      blend(a2, corner + vec2(0.0, 2.0), p);
      blend(b2, corner + vec2(4.0, 2.0), p);
      blend(a3, corner + vec2(0.0, 3.0), p);
      blend(b3, corner + vec2(4.0, 3.0), p);
    }
  }

  write_four(x, y, a0);
  write_four(x + 4, y, b0);
  write_four(x, y + 1, a1);
  write_four(x + 4, y + 1, b1);
  write_four(x, y + 2, a2);
  write_four(x + 4, y + 2, b2);
  write_four(x, y + 3, a3);
  write_four(x + 4, y + 3, b3);
}
