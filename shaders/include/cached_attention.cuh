#pragma once
// softmax(q k^T scale) v of rows that see unlike numbers of keys, in two steps; see `cached_attention.glsl`.
#include "exponents.cuh"
#include "fours.cuh"

struct CachedStretches {
  unsigned rows;
  unsigned head_counts;
  unsigned sizes;
  unsigned stretches;
  unsigned adds_up;
  float scale;
  float softcap;
  unsigned window;
};

__device__ unsigned heads(const CachedStretches& shape) { return shape.head_counts & 0xffffu; }
__device__ unsigned key_value_heads(const CachedStretches& shape) { return shape.head_counts >> 16; }
__device__ unsigned head_size(const CachedStretches& shape) { return shape.sizes & 0xffffu; }
__device__ unsigned value_size(const CachedStretches& shape) { return shape.sizes >> 16; }

__device__ Quad fma_of(Quad a, Quad b, Quad sum) {
  return {fmaf(a.x, b.x, sum.x), fmaf(a.y, b.y, sum.y), fmaf(a.z, b.z, sum.z), fmaf(a.w, b.w, sum.w)};
}
__device__ Quad sum_of_quads(Quad a, Quad b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__device__ Quad larger_of(Quad a, Quad b) { return {fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w)}; }

// Returns the largest scores of `count` queries in the block. All threads of the block call it.
__device__ Quad largest_of_block(Quad scores, unsigned count, Quad* of_warps) {
#pragma unroll
  for (int reach = 1; reach < 32; reach *= 2) {
    scores.x = fmaxf(scores.x, shuffled(scores.x, reach));
    if (count > 1) scores.y = fmaxf(scores.y, shuffled(scores.y, reach));
    if (count > 2) scores.z = fmaxf(scores.z, shuffled(scores.z, reach));
    if (count > 3) scores.w = fmaxf(scores.w, shuffled(scores.w, reach));
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = scores;
  __syncthreads();
  Quad all = of_warps[0];
  for (unsigned i = 1; i < 8; ++i) all = larger_of(all, of_warps[i]);
  return all;
}

// Returns cap tanh(score / cap). Infinities become the cap.
__device__ float capped(float score, float cap) {
  if (cap == 0.0f || score != score) return score;
  const float size = fminf(fabsf(score / cap), 64.0f), z = size * size, e = exponential(-2.0f * size);
  const float series = size + size * z * (-1.0f / 3 + z * (2.0f / 15 + z * (-17.0f / 315 + z * (62.0f / 2835))));
  return scaled(size < 0.25f ? series : (1.0f - e) / (1.0f + e), score < 0.0f ? -cap : cap);
}
__device__ float score_of(Quad products, const CachedStretches& shape) {
  return capped(scaled((products.x + products.y) + (products.z + products.w), shape.scale), shape.softcap);
}
__device__ float or_nothing(float score) { return fabsf(score) <= largest_float ? score : -largest_float; }

// -infinity has no weight; NaN and +infinity make the result NaN.
__device__ float weight_of(float score, float most) {
  if (!(fabsf(score) <= largest_float)) return score < 0.0f ? 0.0f : nanf("");
  return exponential(score - most);
}
__device__ float component(Quad v, unsigned i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

struct CachedTiles {
  Quad queries[256];  // 64 of each query, then sums of values
  Quad weights[256];  // of each key
  Quad totals[256];   // the largest scores of warps, then sums of weights of subsets of keys
};

template <class T>
__device__ void attend_stretch(const typename T::Number* q, const typename T::Number* keys, const typename T::Number* values,
                               const unsigned* places, float* state, const CachedStretches& shape, CachedTiles& tiles) {
  const unsigned group = heads(shape) / key_value_heads(shape), parts = (group + 3) / 4;
  const unsigned row_parts = shape.rows * parts, of_stretch = key_value_heads(shape) * row_parts;
  const Size block = flat_block();
  if (of_stretch == 0 || block / of_stretch >= shape.stretches) return;
  const unsigned number = unsigned(block), stretch = number / of_stretch, key_head = number % of_stretch / row_parts;
  const unsigned row = number % row_parts / parts, part = number % parts;
  const unsigned base = places[3 * row], seen = places[3 * row + 1], first = stretch * 256;
  if (first >= seen) return;
  const unsigned me = threadIdx.x, size = head_size(shape), columns = value_size(shape);
  const unsigned head = key_head * group + 4 * part, count = min(4u, group - 4 * part);
  const unsigned key_columns = key_value_heads(shape) * size, value_columns = key_value_heads(shape) * columns;

  const unsigned query = me / 64, four = me % 64;
  Quad mine = {0.0f, 0.0f, 0.0f, 0.0f};
  if (query < count && 4 * four < size)
    mine = four_at<T>(q + Size(row * heads(shape) + head + query) * size, four, size, false);
  tiles.queries[me] = mine;
  __syncthreads();

  const unsigned hidden = stretch == 0 && seen > shape.window ? seen - shape.window : 0;
  const bool here = first + me < seen && me >= hidden;
  Quad scores = {-largest_float, -largest_float, -largest_float, -largest_float};
  if (here) {
    const typename T::Number* const line = keys + Size(base + first + me) * key_columns + key_head * size;
    const bool together = has_fours<T>(line);
    Quad products0 = {0.0f, 0.0f, 0.0f, 0.0f}, products1 = products0, products2 = products0, products3 = products0;
#pragma unroll 4
    for (unsigned i = 0; 4 * i < size; ++i) {
      const Quad some = four_at<T>(line, i, size, together);
      products0 = fma_of(tiles.queries[i], some, products0);
      if (count > 1) products1 = fma_of(tiles.queries[64 + i], some, products1);
      if (count > 2) products2 = fma_of(tiles.queries[128 + i], some, products2);
      if (count > 3) products3 = fma_of(tiles.queries[192 + i], some, products3);
    }
    scores = {score_of(products0, shape), score_of(products1, shape), score_of(products2, shape),
              score_of(products3, shape)};
  }
  const Quad finite = {or_nothing(scores.x), or_nothing(scores.y), or_nothing(scores.z), or_nothing(scores.w)};
  const Quad most = largest_of_block(finite, count, tiles.totals);
  Quad weight = {0.0f, 0.0f, 0.0f, 0.0f};
  if (here)
    weight = {weight_of(scores.x, most.x), weight_of(scores.y, most.y), weight_of(scores.z, most.z), weight_of(scores.w, most.w)};
  tiles.weights[me] = weight;
  __syncthreads();

  unsigned lanes_log2 = 0;
  while ((1u << lanes_log2) < columns) ++lanes_log2;
  const unsigned subsets = 256u >> lanes_log2, subset = me >> lanes_log2, column = me & ((1u << lanes_log2) - 1);
  const unsigned last = min(seen - first, 256u);
  const typename T::Number* const values_here = values + Size(base + first) * value_columns + key_head * columns + column;
  Quad sums = {0.0f, 0.0f, 0.0f, 0.0f}, total = sums;
#pragma unroll 4
  for (unsigned i = hidden + ((subset - hidden) & (subsets - 1)); i < last; i += subsets) {
    const Quad some = tiles.weights[i];
    total = sum_of_quads(total, some);
    float value = 0.0f;
    if (column < columns) value = T::at(values_here + Size(i) * value_columns);
    sums = fma_of(some, {value, value, value, value}, sums);
  }
  tiles.queries[me] = sums;
  if (column == 0) tiles.totals[subset] = total;
  __syncthreads();

  if (subset != 0 || column >= columns) return;
  for (unsigned i = 1; i < subsets; ++i) {
    sums = sum_of_quads(sums, tiles.queries[(i << lanes_log2) + column]);
    if (column == 0) total = sum_of_quads(total, tiles.totals[i]);
  }
  for (unsigned j = 0; j < count; ++j) {
    float* const kept = state + (Size(row * heads(shape) + head + j) * shape.stretches + stretch) * (columns + 2);
    if (column == 0) {
      kept[0] = component(most, j);
      kept[1] = component(total, j);
    }
    kept[2 + column] = component(sums, j);
  }
}

// A thread has columns lane + 32 i.
template <class T>
__device__ void add_up_stretches(const unsigned* places, const float* state, typename T::Number* result,
                                 const CachedStretches& shape) {
  const Size query = flat_thread() / 32;
  if (query >= Size(shape.rows) * heads(shape)) return;
  const unsigned lane = threadIdx.x % 32, columns = value_size(shape), step = columns + 2;
  const unsigned seen = places[3 * (query / heads(shape)) + 1], count = (seen + 255) / 256;
  const float* const kept = state + query * shape.stretches * step;
  float most = -largest_float;
  for (unsigned i = 0; i < count; ++i) most = fmaxf(most, kept[i * step]);
  float total = 0.0f, sums[8] = {};
  for (unsigned i = 0; i < count; ++i) {
    const float* const from = kept + i * step;
    const float ratio = exponential(from[0] - most);
    total = fmaf(from[1], ratio, total);
#pragma unroll
    for (unsigned j = 0; j < 8; ++j)
      if (lane + 32 * j < columns) sums[j] = fmaf(from[2 + lane + 32 * j], ratio, sums[j]);
  }
  const float share = share_of({most, total});
#pragma unroll
  for (unsigned j = 0; j < 8; ++j)
    if (lane + 32 * j < columns)
      T::write_two(result + query * columns + lane + 32 * j, 1, false, seen == 0 ? 0.0f : sums[j] * share, 0.0f);
}

template <class T>
__device__ void attend_rows(const typename T::Number* q, const typename T::Number* keys, const typename T::Number* values,
                            const unsigned* places, float* state, typename T::Number* result, const CachedStretches& shape,
                            CachedTiles& tiles) {
  if (shape.adds_up == 0)
    attend_stretch<T>(q, keys, values, places, state, shape, tiles);
  else
    add_up_stretches<T>(places, state, result, shape);
}
