#pragma once
// Attention with float32 arithmetic. Narrower numbers are converted when they are copied to shared memory. A
// thread computes 4 x 4 scores of a tile of 64 keys in registers, then 4 rows x 8 columns of the products
// with values. The rows are the same, and 16 adjacent threads share them. Blocks of 256 threads process all
// their queries at the same time, blocks of 128 threads one half after the other.
#include "attention.cuh"
#include "numbers.cuh"

constexpr unsigned tile_keys = 64, stage_columns = 32, stage_keys = 32;
// Lines are aligned to 16 bytes, and loads of them by eight adjacent threads have no bank conflicts.
template <unsigned threads>
struct alignas(16) AttentionTiles {
  static constexpr unsigned rows = threads / 4;
  struct Factors {
    float q[rows][stage_columns + 4];
    float k[tile_keys][stage_columns + 4];
  };
  float weights[rows][tile_keys + 4];
  union {
    Factors of_scores;
    float v[stage_keys][pass_columns];
  };
  Queries place;  // the current queries, here because no registers are left
};

// Copies the first `width` numbers of `count` lines, `step` apart from `from` on, to shared memory. Pads with
// zeros to the next multiple of four, and fills missing lines with zeros.
template <class T, unsigned threads, unsigned columns, unsigned lines, unsigned pitch>
__device__ void fetch_lines(float (&to)[lines][pitch], const typename T::Number* from, unsigned step, unsigned count,
                            unsigned width) {
  typedef typename T::Four Four;
  constexpr unsigned lines_at_once = 4 * threads / columns;
  const unsigned at = threadIdx.x % (columns / 4) * 4, left = width > at ? width - at : 0;
  if (left == 0) return;
  from += at;
  if (has_quads<Four>(from) && step % 4 == 0 && left >= 4) {
#pragma unroll 2
    for (unsigned line = threadIdx.x / (columns / 4); line < lines; line += lines_at_once) {
      Four four = {};
      if (line < count) four = *reinterpret_cast<const Four*>(from + Size(line) * step);
      *reinterpret_cast<Quad*>(&to[line][at]) = T::values(four);
    }
    return;
  }
#pragma unroll 1
  for (unsigned line = threadIdx.x / (columns / 4); line < lines; line += lines_at_once)
    *reinterpret_cast<Quad*>(&to[line][at]) = T::values(T::four(from + Size(line) * step, line < count ? left : 0));
}

// The mask of scores, if there is one. Its current tile is in shared memory in the place of the weights.
struct NoMask {
  static constexpr bool hides = false;
  template <unsigned threads>
  __device__ void fetch(AttentionTiles<threads>&, const Stretch&, const Queries&, unsigned) const {}
  __device__ float masked(float score, float) const { return score; }
};
struct Mask {
  static constexpr bool hides = true;
  const float* data;
  Size size;

  template <unsigned threads>
  __device__ void fetch(AttentionTiles<threads>& tiles, const Stretch& stretch, const Queries& place, unsigned key) const {
    const Size head = size == Size(stretch.queries) * stretch.keys ? 0 : place.head;  // one mask for all heads
    const float* const from = data + (head * stretch.queries + place.query) * stretch.keys + key;
    const unsigned at = threadIdx.x % tile_keys, count = stretch.last - key;
#pragma unroll 1
    for (unsigned line = threadIdx.x / tile_keys; line < place.rows; line += threads / tile_keys)
      if (at < count) tiles.weights[line][at] = from[Size(line) * stretch.keys + at];
  }
  // -infinity hides a key with any score.
  __device__ float masked(float score, float added) const {
    return __float_as_uint(added) == 0xff800000u ? added : score + added;
  }
};

__device__ Quad quad_at(const float* from) { return *reinterpret_cast<const Quad*>(from); }

// With `hides`, the weight 0 hides a value that is NaN or infinite, because a query may not see its key.
template <bool hides>
__device__ void add_products(float* sums, float weight, Quad values) {
  if (hides && weight == 0.0f) return;
  sums[0] = fmaf(weight, values.x, sums[0]), sums[1] = fmaf(weight, values.y, sums[1]);
  sums[2] = fmaf(weight, values.z, sums[2]), sums[3] = fmaf(weight, values.w, sums[3]);
}

// Adds weights from `from` on times a stage of values, for the first `columns` columns of a thread.
template <unsigned columns, bool hides, unsigned threads>
__device__ void add_values(float (&sums)[4][8], const AttentionTiles<threads>& tiles, unsigned from) {
  const unsigned x = threadIdx.x % 16, row = threadIdx.x / 16 * 4;
#pragma unroll 1
  for (unsigned i = 0; i < stage_keys; i += 4) {
    Quad weights[4];
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) weights[r] = quad_at(&tiles.weights[row + r][from + i]);
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
#pragma unroll
      for (unsigned c = 0; c < columns; c += 4) {
        const Quad values = quad_at(&tiles.v[i + j][c * 16 + x * 4]);
#pragma unroll
        for (unsigned r = 0; r < 4; ++r)
          add_products<hides>(&sums[r][c], j == 0 ? weights[r].x : j == 1 ? weights[r].y : j == 2 ? weights[r].z : weights[r].w, values);
      }
    }
  }
}

// Processes as many queries as there are rows in shared memory.
template <class T, class M, unsigned threads>
__device__ void attend_to(const Queries& place, const typename T::Number* q, const typename T::Number* k,
                          const typename T::Number* v, typename T::Number* result, float* state, const Stretch& stretch,
                          const M& mask, AttentionTiles<threads>& tiles) {
  if (threadIdx.x == 0) tiles.place = place;
  __syncthreads();
  const unsigned size = head_size(stretch), columns = value_size(stretch);
  const unsigned x = threadIdx.x % 16, row = threadIdx.x / 16 * 4;
  const unsigned end = min(stretch.last, seen_by(stretch, place.query + place.rows - 1));
  const bool ends = stretch.last == stretch.keys;

  for (unsigned column = 0; column < columns; column += pass_columns) {
    const unsigned width = min(pass_columns, columns - column);
    // A thread has columns 4 x to 4 x + 3, and 64 + 4 x to 64 + 4 x + 3.
    float most[4], total[4], sums[4][8] = {};
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) {
      most[r] = -largest_float;
      total[r] = 0.0f;
      if (stretch.first == 0 || row + r >= place.rows) continue;
      const float* const kept = state_of(state, stretch, place, row + r);
      most[r] = kept[0];
      total[r] = x == 0 ? kept[1] : 0.0f;
#pragma unroll
      for (unsigned i = 0; i < 8; ++i) {
        const unsigned at = i / 4 * 64 + x * 4 + i % 4;
        if (at < width) sums[r][i] = kept[2 + column + at];
      }
    }

    for (unsigned key = stretch.first; key < end; key += tile_keys) {
      float scores[4][4] = {};
      for (unsigned from = 0; from < size; from += stage_columns) {
        const unsigned depth = min(stage_columns, size - from);
        __syncthreads();
        const Queries now = tiles.place;
        if (from == 0) mask.fetch(tiles, stretch, now, key);
        const Size line = now.head * stretch.queries + now.query;
        fetch_lines<T, threads, stage_columns>(tiles.of_scores.q, q + line * size + from, size, now.rows, depth);
        fetch_lines<T, threads, stage_columns>(tiles.of_scores.k, k + (now.head * stretch.keys + key) * size + from, size,
                                               stretch.last - key, depth);
        __syncthreads();
#pragma unroll 1
        for (unsigned i = 0; i < depth; i += 4) {
          Quad left[4];
#pragma unroll
          for (unsigned r = 0; r < 4; ++r) left[r] = quad_at(&tiles.of_scores.q[row + r][i]);
#pragma unroll
          for (unsigned s = 0; s < 4; ++s) {
            const Quad right = quad_at(&tiles.of_scores.k[x + 16 * s][i]);
#pragma unroll
            for (unsigned r = 0; r < 4; ++r) {
              float& score = scores[r][s];
              score = fmaf(left[r].x, right.x, score), score = fmaf(left[r].y, right.y, score);
              score = fmaf(left[r].z, right.z, score), score = fmaf(left[r].w, right.w, score);
            }
          }
        }
      }

#pragma unroll
      for (unsigned r = 0; r < 4; ++r) {
        const unsigned seen = min(seen_by(stretch, tiles.place.query + row + r), stretch.last);
        float next = most[r];
#pragma unroll
        for (unsigned s = 0; s < 4; ++s) {
          const unsigned at = key + x + 16 * s;
          scores[r][s] = at < seen ? mask.masked(scaled(scores[r][s], stretch.scale), tiles.weights[row + r][x + 16 * s])
                                   : no_score();
          next = fmaxf(next, scores[r][s]);
        }
#pragma unroll
        for (int bits = 1; bits < 16; bits *= 2) next = fmaxf(next, shuffled(next, bits));
        const float factor = exponential(most[r] - next);
        most[r] = next;
        total[r] *= factor;
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) sums[r][i] *= factor;
#pragma unroll
        for (unsigned s = 0; s < 4; ++s) {
          const float weight = exponential(scores[r][s] - next);
          total[r] += weight;
          tiles.weights[row + r][x + 16 * s] = weight;
        }
      }

      for (unsigned from = 0; from < tile_keys; from += stage_keys) {
        const unsigned first = key + from;
        __syncthreads();
        fetch_lines<T, threads, pass_columns>(tiles.v, v + (tiles.place.head * stretch.keys + first) * columns + column, columns,
                                              stretch.last > first ? stretch.last - first : 0, width);
        __syncthreads();
        const bool all_see = !M::hides && seen_by(stretch, tiles.place.query) >= min(key + tile_keys, end);
        if (!all_see)
          add_values<8, true>(sums, tiles, from);
        else if (width > 64)
          add_values<8, false>(sums, tiles, from);
        else
          add_values<4, false>(sums, tiles, from);
      }
    }

#pragma unroll
    for (unsigned r = 0; r < 4; ++r)
#pragma unroll
      for (int bits = 1; bits < 16; bits *= 2) total[r] += shuffled(total[r], bits);
    const Queries at_end = tiles.place;
    typename T::Number* const lines = result + (at_end.head * stretch.queries + at_end.query) * columns + column;
    const bool pairs = reinterpret_cast<Size>(result) % 4 == 0 && columns % 2 == 0;
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) {
      if (row + r >= at_end.rows) continue;
      float* const kept = state_of(state, stretch, at_end, row + r);
      // The next pass begins with them, too.
      if (!ends && x == 0 && column + pass_columns >= columns) {
        kept[0] = most[r];
        kept[1] = total[r];
      }
      const bool blind = seen_by(stretch, at_end.query + row + r) == 0;
      const float share = M::hides && total[r] == 0.0f ? 0.0f : share_of({most[r], total[r]});
      typename T::Number* const to = lines + Size(row + r) * columns;
#pragma unroll
      for (unsigned i = 0; i < 8; i += 2) {
        const unsigned at = i / 4 * 64 + x * 4 + i % 4, left = at < width ? width - at : 0;
        const float low = sums[r][i], high = sums[r][i + 1];
        if (ends)
          T::write_two(to + at, left, pairs, blind ? 0.0f : low * share, blind ? 0.0f : high * share);
        else
          Float::write_two(kept + 2 + column + at, left, false, low, high);
      }
    }
  }
}

template <class T, class M, unsigned threads>
__device__ void attend(const typename T::Number* q, const typename T::Number* k, const typename T::Number* v,
                       typename T::Number* result, float* state, const Stretch& stretch, const M& mask,
                       AttentionTiles<threads>& tiles) {
  constexpr unsigned rows = AttentionTiles<threads>::rows;
#pragma unroll 1
  for (unsigned first = 0; first < block_queries; first += rows) {
    Queries place;
    if (!find_queries(stretch, place) || first >= place.rows) return;
    place.query += first;
    place.rows = min(rows, place.rows - first);
    attend_to<T>(place, q, k, v, result, state, stretch, mask, tiles);
    __syncthreads();
  }
}

template <class T, unsigned threads>
__device__ void attend(const typename T::Number* q, const typename T::Number* k, const typename T::Number* v,
                       typename T::Number* result, float* state, const Stretch& stretch, AttentionTiles<threads>& tiles) {
  attend<T>(q, k, v, result, state, stretch, NoMask(), tiles);
}
