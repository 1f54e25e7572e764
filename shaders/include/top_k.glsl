// Selects the first `keep` elements of each tile of longer rows in sorted order, and writes them in the order of their
// columns. Finds the last of them digit by digit, from the highest on.
#include "sort.glsl"
#include "prefix.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  ConstNumberSpan places;           // empty: the columns of x
  NumberSpan selected;              // of each tile `keep`; fewer of the last tile if it has fewer
  NumberSpan selected_places;
  SortShape shape;
};
shared uint counts[256];
shared uint chosen;   // the digit of the last selected element
shared uint missing;  // elements with that digit to be selected

void main() {
  const Tile t = tile_of(shape);
  if (t.size == 0) return;  // as the whole workgroup
  const uint me = gl_LocalInvocationID.x, first = per_lane * me;
  KEY keys[per_lane];
  bool candidate[per_lane], taken[per_lane];
  for (uint j = 0; j < per_lane; ++j) {
    candidate[j] = first + j < t.size;
    taken[j] = false;
    if (candidate[j]) keys[j] = key_of(element_bits(uvec2(x.data), plus(t.first, uvec2(first + j, 0))), shape);
  }

  uint need = min(shape.keep, t.size);
  for (uint shift = shape.bits; shift != 0;) {
    shift -= 8;
    counts[me] = 0;
    barrier();
    for (uint j = 0; j < per_lane; ++j)
      if (candidate[j]) atomicAdd(counts[digit_of(keys[j], shift, 255)], 1);
    barrier();
    uint total;
    const uint mine = counts[me], before = prefix_of(mine, total);
    if (before < need && need <= before + mine) {
      chosen = me;
      missing = need - before;
    }
    barrier();
    need = missing;
    for (uint j = 0; j < per_lane; ++j)
      if (candidate[j]) {
        const uint digit = digit_of(keys[j], shift, 255);
        taken[j] = digit < chosen;
        candidate[j] = digit == chosen;
      }
    barrier();
  }

  // Of the elements that are equal to the last one, the first `need`.
  uint sums = 0;
  for (uint j = 0; j < per_lane; ++j) sums += (taken[j] ? 1u : 0u) + (candidate[j] ? 1u << 16 : 0u);
  uint total;
  uint before = prefix_of(sums, total);
  const uint tile = t.column / tile_size;
  const uint last = min(shape.keep, shape.columns - (shape.tiles - 1) * tile_size);
  const uvec2 line = plus(product(t.row, (shape.tiles - 1) * shape.keep + last), uvec2(tile * shape.keep, 0));
  for (uint j = 0; j < per_lane; ++j) {
    const uint smaller = before & 0xffffu, equal = before >> 16;
    if (taken[j] || (candidate[j] && equal < need)) {
      const uvec2 index = plus(line, uvec2(smaller + min(equal, need), 0)), from = plus(t.first, uvec2(first + j, 0));
      uint place = t.column + first + j;
      if (places.size != uvec2(0)) place = ConstWords(element(uvec2(places.data), from)).at[0];
      write_number(uvec2(selected.data), index, element_bits(uvec2(x.data), from));
      write_word(uvec2(selected_places.data), index, place);
    }
    before += (taken[j] ? 1u : 0u) + (candidate[j] ? 1u << 16 : 0u);
  }
}
