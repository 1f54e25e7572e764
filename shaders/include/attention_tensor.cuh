#pragma once
// Attention with tensor cores, of 16-bit numbers. Each of the four warps processes 16 queries and has their
// scores for 32 keys in registers. Their exponentials, rounded to 16 bits, are already in the layout for the
// product with values. The queries stay in shared memory if a head's columns fit.
#include "attention.cuh"
#include "tensor.cuh"

constexpr unsigned tile_keys = 32;
// Padded by four words, like `row_words`.
constexpr unsigned line_words = pass_columns / 2 + 4;

template <class T>
struct AttentionTiles {
  alignas(16) unsigned q[block_queries][line_words];
  alignas(16) unsigned k[tile_keys][line_words];
  alignas(16) unsigned v[tile_keys][line_words];
  Queries place;  // of this block, here because no registers are left
};

// Copies the first `width` numbers of `count` lines, `step` apart from `from` on, to shared memory. Pads with
// zeros to the next multiple of 16 numbers, and fills missing lines with zeros.
template <class T, unsigned lines>
__device__ void fetch_lines(unsigned (*to)[line_words], const typename T::Number* from, unsigned step, unsigned count,
                            unsigned width) {
  const unsigned word = threadIdx.x % 16 * 4, at = 2 * word;
  if (at >= (width + 15) / 16 * 16) return;
  const unsigned left = width > at ? width - at : 0;
  from += at;
  if (has_quads(from) && step % 8 == 0 && left >= 8) {
#pragma unroll 2
    for (unsigned i = 0; i < lines; i += 8) {
      const unsigned line = threadIdx.x / 16 + i;
      Words<4> words = {};
      if (line < count) words = *reinterpret_cast<const Words<4>*>(from + Size(line) * step);
      *reinterpret_cast<Words<4>*>(&to[line][word]) = words;
    }
    return;
  }
#pragma unroll 1
  for (unsigned line = threadIdx.x / 16; line < lines; line += 8)
#pragma unroll
    for (unsigned w = 0; w < 4; ++w) {
      const unsigned here = line < count && left > 2 * w ? left - 2 * w : 0;
      to[line][word + w] = WordFetcher<T>::word_of(from + Size(line) * step + 2 * w, here);
    }
}

__device__ bool is_non_finite(float v) { return (__float_as_uint(v) & 0x7f800000u) == 0x7f800000u; }

// Returns whether the lines of values from `first` on have NaN or infinities in `width` columns. Called by a
// whole warp.
template <class T>
__device__ bool has_non_finite(const unsigned (&lines)[tile_keys][line_words], unsigned first, unsigned width) {
  const unsigned words = (width + 1) / 2;
  bool odd = false;
  for (unsigned line = first; line < tile_keys; ++line)
    for (unsigned word = threadIdx.x % 32; word < words; word += 32) {
      float low, high;
      T::split(lines[line][word], low, high);
      odd |= is_non_finite(low) || is_non_finite(high);
    }
  return __any_sync(0xffffffffu, odd) != 0;
}

// Adds the products of weights and values without tensor cores, except those with the weight 0. This hides
// NaN and infinities of keys that a query does not see.
template <class T>
__device__ void add_seen_values(float (&sums)[pass_columns / 8][4], const float (&weights)[tile_keys / 8][4],
                                const unsigned (&lines)[tile_keys][line_words], unsigned width) {
  const unsigned lane = threadIdx.x % 32, t = lane % 4;
#pragma unroll 1
  for (unsigned from = 0; from < 4; ++from)
#pragma unroll
    for (unsigned i = 0; i < tile_keys / 4; ++i) {
      const float first = __shfl_sync(0xffffffffu, weights[i / 2][i % 2], int(lane - t + from));
      const float second = __shfl_sync(0xffffffffu, weights[i / 2][2 + i % 2], int(lane - t + from));
      const unsigned* const line = lines[i / 2 * 8 + from * 2 + i % 2];
#pragma unroll
      for (unsigned n = 0; n < pass_columns / 8; ++n) {
        if (n * 8 >= width) continue;
        float low, high;
        T::split(line[n * 4 + t], low, high);
        if (first != 0.0f) sums[n][0] = fmaf(first, low, sums[n][0]), sums[n][1] = fmaf(first, high, sums[n][1]);
        if (second != 0.0f) sums[n][2] = fmaf(second, low, sums[n][2]), sums[n][3] = fmaf(second, high, sums[n][3]);
      }
    }
}

template <class T>
__device__ void attend(const typename T::Number* q, const typename T::Number* k, const typename T::Number* v,
                       typename T::Number* result, float* state, const Stretch& stretch, AttentionTiles<T>& tiles) {
  Queries place;
  if (!find_queries(stretch, place)) return;
  if (threadIdx.x == 0) tiles.place = place;
  const unsigned size = head_size(stretch), columns = value_size(stretch);

  // A lane has columns 2 t and 2 t + 1 of every eight, of the warp's rows g and g + 8.
  const unsigned warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, row = warp * 16 + g;
  const bool works = warp * 16 < place.rows;
  const unsigned end = min(stretch.last, seen_by(stretch, place.query + place.rows - 1));
  const bool stays = size <= pass_columns, ends = stretch.last == stretch.keys;
  if (stays)
    fetch_lines<T, block_queries>(tiles.q, q + (place.head * stretch.queries + place.query) * size, size, place.rows, size);
  __syncthreads();

  for (unsigned column = 0; column < columns; column += pass_columns) {
    const unsigned width = min(pass_columns, columns - column);
    float most[2] = {-largest_float, -largest_float}, total[2] = {}, sums[pass_columns / 8][4] = {};
    if (stretch.first != 0) {
#pragma unroll
      for (unsigned r = 0; r < 2; ++r) {
        if (row + 8 * r >= place.rows) continue;
        const float* const kept = state_of(state, stretch, place, row + 8 * r);
        most[r] = kept[0];
        total[r] = t == 0 ? kept[1] : 0.0f;
#pragma unroll
        for (unsigned i = 0; i < pass_columns / 4; ++i) {
          const unsigned at = i / 2 * 8 + t * 2 + i % 2;
          if (at < width) sums[i / 2][2 * r + i % 2] = kept[2 + column + at];
        }
      }
    }

    for (unsigned key = stretch.first; key < end; key += tile_keys) {
      float scores[tile_keys / 8][4] = {};
      for (unsigned from = 0; from < size; from += pass_columns) {
        const unsigned depth = min(pass_columns, size - from);
        __syncthreads();
        const Queries now = tiles.place;
        if (!stays)
          fetch_lines<T, block_queries>(tiles.q, q + (now.head * stretch.queries + now.query) * size + from, size, now.rows, depth);
        const Size line = now.head * stretch.keys + key;
        fetch_lines<T, tile_keys>(tiles.k, k + line * size + from, size, stretch.last - key, depth);
        if (from == 0) fetch_lines<T, tile_keys>(tiles.v, v + line * columns + column, columns, stretch.last - key, width);
        __syncthreads();
        if (!works) continue;
#pragma unroll 1
        for (unsigned word = 0; 2 * word < depth; word += 8) {
          unsigned left[4];
          load_pieces(left, &tiles.q[warp * 16], word);
#pragma unroll
          for (unsigned n = 0; n < tile_keys / 8; n += 2) {
            unsigned both[4];
            load_pieces(both, &tiles.k[n * 8], word);
            T::multiply(scores[n], left, both[0], both[2]);
            T::multiply(scores[n + 1], left, both[1], both[3]);
          }
        }
      }
      if (!works) continue;

      const unsigned seen[2] = {min(seen_by(stretch, tiles.place.query + row), stretch.last),
                                min(seen_by(stretch, tiles.place.query + row + 8), stretch.last)};
      float next[2] = {most[0], most[1]};
#pragma unroll
      for (unsigned i = 0; i < tile_keys / 2; ++i) {
        float& score = scores[i / 4][i % 4];
        const unsigned at = key + i / 4 * 8 + t * 2 + i % 2, r = i / 2 % 2;
        score = at < seen[r] ? scaled(score, stretch.scale) : no_score();
        next[r] = fmaxf(next[r], score);
      }
      float factor[2];
#pragma unroll
      for (unsigned r = 0; r < 2; ++r) {
        next[r] = fmaxf(next[r], shuffled(next[r], 1));
        next[r] = fmaxf(next[r], shuffled(next[r], 2));
        factor[r] = __expf(most[r] - next[r]);
        most[r] = next[r];
        total[r] *= factor[r];
      }
#pragma unroll
      for (unsigned i = 0; i < tile_keys / 2; ++i) {
        float& score = scores[i / 4][i % 4];
        score = __expf(score - most[i / 2 % 2]);
        total[i / 2 % 2] += score;
      }
      const unsigned seen_by_all = seen_by(stretch, tiles.place.query + warp * 16);
      if (seen_by_all < min(key + tile_keys, stretch.last) &&
          has_non_finite<T>(tiles.v, seen_by_all > key ? seen_by_all - key : 0, width)) {
#pragma unroll
        for (unsigned i = 0; i < pass_columns / 2; ++i) sums[i / 4][i % 4] *= factor[i / 2 % 2];
        add_seen_values<T>(sums, scores, tiles.v, width);
        continue;
      }
      unsigned weights[tile_keys / 16][4];
#pragma unroll
      for (unsigned i = 0; i < tile_keys / 4; ++i)
        weights[i / 4][i % 4] = T::rounded(scores[i / 2][i % 2 * 2], scores[i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (unsigned i = 0; i < pass_columns / 2; ++i) sums[i / 4][i % 4] *= factor[i / 2 % 2];
#pragma unroll
      for (unsigned m = 0; m < tile_keys / 16; ++m)
#pragma unroll
        for (unsigned n = 0; n < pass_columns / 8; n += 2) {
          if (n * 8 >= width) continue;
          unsigned both[4];
          load_transposed_columns(both, &tiles.v[m * 16], n * 4);
          T::multiply(sums[n], weights[m], both[0], both[1]);
          T::multiply(sums[n + 1], weights[m], both[2], both[3]);
        }
    }

    const Queries at_end = tiles.place;
    typename T::Number* const lines = result + (at_end.head * stretch.queries + at_end.query) * columns + column;
    const bool pairs = reinterpret_cast<Size>(result) % 4 == 0 && columns % 2 == 0;
#pragma unroll
    for (unsigned r = 0; r < 2; ++r) {
      total[r] += shuffled(total[r], 1);
      total[r] += shuffled(total[r], 2);
    }
#pragma unroll
    for (unsigned r = 0; r < 2; ++r) {
      if (row + 8 * r >= at_end.rows) continue;
      float* const kept = state_of(state, stretch, at_end, row + 8 * r);
      // The next pass begins with them, too.
      if (!ends && t == 0 && column + pass_columns >= columns) {
        kept[0] = most[r];
        kept[1] = total[r];
      }
      const bool blind = seen_by(stretch, at_end.query + row + 8 * r) == 0;
      const float share = share_of({most[r], total[r]});
      typename T::Number* const to = lines + Size(row + 8 * r) * columns;
#pragma unroll
      for (unsigned n = 0; n < pass_columns / 8; ++n) {
        const unsigned at = n * 8 + t * 2;
        const float low = sums[n][2 * r], high = sums[n][2 * r + 1];
        if (!ends) {
          if (at < width) kept[2 + column + at] = low;
          if (at + 1 < width) kept[2 + column + at + 1] = high;
          continue;
        }
        T::write_two(to + at, at < width ? width - at : 0, pairs, blind ? 0.0f : low * share, blind ? 0.0f : high * share);
      }
    }
  }
}
