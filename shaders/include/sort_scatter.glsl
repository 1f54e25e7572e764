// Sorts the elements of each tile in shared memory, in rounds by digits of 4 bits. A round is stable: it counts the digits
// of each invocation's adjacent elements, and adds up the counts of all invocations digit by digit. Tiles of whole rows are
// sorted by the whole key, then by their row. Tiles of longer rows are sorted by one digit of 8 bits, and their elements are
// distributed to the places that `bases` has for each digit.
#include "sort.glsl"
#include "prefix.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan keys;
  ConstNumberSpan values;     // empty: the columns of the keys
  NumberSpan sorted_keys;     // `keep` of each row
  NumberSpan sorted_values;   // the same; empty: none are written
  ConstNumberSpan bases;      // of each row, 256 x tiles, then of each row the totals of 256 digits; empty: sorts whole rows
  SortShape shape;
};
shared uint words[tile_size];  // the places of the tile in sorted order, or counts
shared uint firsts[256];
shared uint starts[256];

KEY key_at(Tile t, uint place) {
  return key_of(element_bits(uvec2(keys.data), plus(t.first, uvec2(place, 0))), shape);
}

uint digit_at(Tile t, uint place) { return digit_of(key_at(t, place), shape.shift, 255); }

// Returns the digit of 4 bits of a round. Elements that do not exist have the largest one, and remain the last.
uint digit_of_round(Tile t, uint place, uint round, uint key_rounds) {
  if (place >= t.size) return 15;
  if (round < key_rounds) return digit_of(key_at(t, place), shape.shift + 4 * round, 15);
  return place / shape.columns >> 4 * (round - key_rounds) & 15;
}

// Moves the places in `words` to the order of one digit.
void sort_by(Tile t, uint round, uint key_rounds) {
  const uint me = gl_LocalInvocationID.x;
  uint places[per_lane], digits[per_lane], ranks[per_lane];
  uint low = 0, high = 0;  // counts of digits below 8 and of the others, 4 bits each: at most per_lane
  for (uint j = 0; j < per_lane; ++j) {
    const uint p = per_lane * me + j;
    places[j] = round == 0 ? p : words[p];
    digits[j] = digit_of_round(t, places[j], round, key_rounds);
    const uint at = 4 * (digits[j] & 7);
    ranks[j] = (digits[j] < 8 ? low : high) >> at & 15;
    if (digits[j] < 8)
      low += 1u << at;
    else
      high += 1u << at;
  }
  barrier();
  for (uint d = 0; d < 8; ++d) words[256 * d + me] = (low >> 4 * d & 15) | (high >> 4 * d & 15) << 16;
  barrier();
  uint before[per_lane], sum = 0;
  for (uint j = 0; j < per_lane; ++j) {
    before[j] = sum;
    sum += words[per_lane * me + j];
  }
  uint total;
  uint base = prefix_of(sum, total);
  base += total << 16;  // digits of 8 and more follow all others
  for (uint j = 0; j < per_lane; ++j) words[per_lane * me + j] = base + before[j];
  barrier();
  for (uint j = 0; j < per_lane; ++j) {
    const uint packed = words[256 * (digits[j] & 7) + me];
    ranks[j] += digits[j] < 8 ? packed & 0xffffu : packed >> 16;
  }
  barrier();
  for (uint j = 0; j < per_lane; ++j) words[ranks[j]] = places[j];
  barrier();
}

// Sets `firsts` to the place of each digit's first element in the row, less its place in the tile.
void find_firsts(Tile t) {
  const uint me = gl_LocalInvocationID.x;
  for (uint p = me; p < t.size; p += 256) {
    const uint digit = digit_at(t, words[p]);
    if (p == 0 || digit_at(t, words[p - 1]) != digit) starts[digit] = p;
  }
  const uvec2 line = plus(product(t.row, 256), uvec2(me, 0));
  const uvec2 totals = times(product(shape.rows, 256), shape.tiles);
  ConstWords total_of = ConstWords(element(uvec2(bases.data), plus(totals, line)));
  const uvec2 place = plus(times(line, shape.tiles), uvec2(t.column / tile_size, 0));
  ConstWords base_of = ConstWords(element(uvec2(bases.data), place));
  uint all;
  const uint base = prefix_of(total_of.at[0], all) + base_of.at[0];
  firsts[me] = base - starts[me];  // not used for digits that the tile does not have
  barrier();
}

void main() {
  const Tile t = tile_of(shape);
  if (t.size == 0) return;  // as the whole workgroup
  const bool whole_rows = bases.size == uvec2(0);
  const uint key_rounds = whole_rows ? shape.bits / 4 : 2;
  uint rounds = key_rounds;
  for (uint rows = shape.rows_per_tile - 1; whole_rows && rows != 0; rows >>= 4) ++rounds;
  for (uint round = 0; round < rounds; ++round) sort_by(t, round, key_rounds);
  if (!whole_rows) find_firsts(t);

  for (uint p = gl_LocalInvocationID.x; p < t.size; p += 256) {
    const uint place = words[p];
    const uvec2 from = plus(t.first, uvec2(place, 0));
    const uint row = whole_rows ? p / shape.columns : 0;
    uint to = p - row * shape.columns;
    if (!whole_rows) to += firsts[digit_at(t, place)];
    if (to >= shape.keep) continue;
    const uvec2 index = plus(product(t.row + row, shape.keep), uvec2(to, 0));
    write_number(uvec2(sorted_keys.data), index, element_bits(uvec2(keys.data), from));
    if (sorted_values.size == uvec2(0)) continue;
    uint value = t.column + place - row * shape.columns;
    if (values.size != uvec2(0)) value = ConstWords(element(uvec2(values.data), from)).at[0];
    write_word(uvec2(sorted_values.data), index, value);
  }
}
