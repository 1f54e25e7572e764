#pragma once
// Sorts the elements of each tile in shared memory, in rounds by digits of 4 bits. A round is stable: it counts the digits
// of each thread's adjacent elements, and adds up the counts of all threads digit by digit. Tiles of whole rows are sorted
// by the whole key, then by their row. Tiles of longer rows are sorted by one digit of 8 bits, and their elements are
// distributed to the places that `bases` has for each digit.
#include "sort.cuh"

// Returns the digit of 4 bits of a round. Elements that do not exist have the largest one, and remain the last.
template <class Number>
__device__ unsigned digit_of_round(const Number* keys, const Tile& t, const SortShape& shape, unsigned place, unsigned round,
                                   unsigned key_rounds) {
  if (place >= t.size) return 15;
  if (round < key_rounds) return digit_of(key_of(keys[place], shape), shape.shift + 4 * round, 15);
  return place / shape.columns >> 4 * (round - key_rounds) & 15;
}

// Moves the places in `words` to the order of one digit.
template <class Number>
__device__ void sort_by(unsigned* words, const Number* keys, const Tile& t, const SortShape& shape, unsigned round,
                        unsigned key_rounds) {
  const unsigned me = threadIdx.x;
  unsigned places[per_thread], digits[per_thread], ranks[per_thread];
  unsigned low = 0, high = 0;  // counts of digits below 8 and of the others, 4 bits each: at most per_thread
#pragma unroll
  for (unsigned j = 0; j < per_thread; ++j) {
    const unsigned p = per_thread * me + j;
    places[j] = round == 0 ? p : words[p];
    digits[j] = digit_of_round(keys, t, shape, places[j], round, key_rounds);
    const unsigned at = 4 * (digits[j] & 7);
    ranks[j] = (digits[j] < 8 ? low : high) >> at & 15;
    if (digits[j] < 8)
      low += 1u << at;
    else
      high += 1u << at;
  }
  __syncthreads();
#pragma unroll
  for (unsigned d = 0; d < 8; ++d) words[256 * d + me] = (low >> 4 * d & 15) | (high >> 4 * d & 15) << 16;
  __syncthreads();
  unsigned before[per_thread], sum = 0;
#pragma unroll
  for (unsigned j = 0; j < per_thread; ++j) {
    before[j] = sum;
    sum += words[per_thread * me + j];
  }
  const Prefix prefix = prefix_of(sum);
  const unsigned base = prefix.before + (prefix.all << 16);  // digits of 8 and more follow all others
#pragma unroll
  for (unsigned j = 0; j < per_thread; ++j) words[per_thread * me + j] = base + before[j];
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < per_thread; ++j) {
    const unsigned packed = words[256 * (digits[j] & 7) + me];
    ranks[j] += digits[j] < 8 ? packed & 0xffffu : packed >> 16;
  }
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < per_thread; ++j) words[ranks[j]] = places[j];
  __syncthreads();
}

// `values` may be empty: the columns of the keys. `sorted_keys` and `sorted_values` have `keep` elements of each row; no values
// are written if `sorted_values` is empty. `bases` are, of each row, 256 x tiles, then of each row the totals of 256 digits. If empty,
// sorts whole rows.
template <class Number>
__device__ void sort_tiles(wye_span<const Number> keys, wye_span<const unsigned> values, wye_span<Number> sorted_keys,
                           wye_span<unsigned> sorted_values, wye_span<const unsigned> bases, const SortShape& shape) {
  __shared__ unsigned words[tile_size];  // the places of the tile in sorted order, or counts
  __shared__ unsigned firsts[256];       // of each digit, the place of the first element in the row less that in the tile
  __shared__ unsigned starts[256];
  const Tile t = tile_of(shape);
  if (t.size == 0) return;  // as the whole block
  const Number* const tile = keys.data + t.first;
  const bool whole_rows = bases.size == 0;
  const unsigned key_rounds = whole_rows ? shape.bits / 4 : 2;
  unsigned rounds = key_rounds;
  if (whole_rows)
    for (unsigned rows = shape.rows_per_tile - 1; rows != 0; rows >>= 4) ++rounds;
  for (unsigned round = 0; round < rounds; ++round) sort_by(words, tile, t, shape, round, key_rounds);

  const auto digit_at = [&](unsigned place) { return digit_of(key_of(tile[place], shape), shape.shift, 255); };
  if (!whole_rows) {
    for (unsigned p = threadIdx.x; p < t.size; p += 256) {
      const unsigned digit = digit_at(words[p]);
      if (p == 0 || digit_at(words[p - 1]) != digit) starts[digit] = p;
    }
    const Size line = t.row * 256 + threadIdx.x;
    const unsigned total = bases[Size(shape.rows) * 256 * shape.tiles + line];
    const unsigned base = prefix_of(total).before + bases[line * shape.tiles + t.column / tile_size];
    firsts[threadIdx.x] = base - starts[threadIdx.x];  // not used for digits that the tile does not have
    __syncthreads();
  }

  for (unsigned p = threadIdx.x; p < t.size; p += 256) {
    const unsigned place = words[p];
    const unsigned row = whole_rows ? p / shape.columns : 0;
    unsigned to = p - row * shape.columns;
    if (!whole_rows) to += firsts[digit_at(place)];
    if (to >= shape.keep) continue;
    const Size index = (t.row + row) * shape.keep + to;
    sorted_keys[index] = tile[place];
    if (sorted_values.size != 0)
      sorted_values[index] = values.size != 0 ? values[t.first + place] : t.column + place - row * shape.columns;
  }
}
