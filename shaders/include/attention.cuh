#pragma once
// Attention as kernels are asked for it: softmax(q k^T scale) v over one stretch of the keys, head by head. A block works on 64
// queries of one head and makes 128 columns of the result in registers, with a tile of keys and values at a time in shared
// memory. Where there are more columns, it does all of it again for those. Source: Dao et al., FlashAttention, arXiv:2205.14135.
#include "exponents.cuh"
#include "quads.cuh"

struct Stretch {
  unsigned heads;
  unsigned queries;  // of a head
  unsigned keys;
  unsigned sizes;  // of rows of q and k in the low 16 bits, of rows of v and the result in the high ones
  unsigned first;  // the stretch of the keys: [first, last)
  unsigned last;
  unsigned causal;
  float scale;
};

constexpr unsigned block_queries = 64, turn_columns = 128;

// The queries of this block.
struct Queries {
  Size head;
  unsigned query;  // the first
  unsigned rows;   // how many
};

// False where there are none.
__device__ bool find_queries(const Stretch& stretch, Queries& place) {
  const unsigned blocks = (stretch.queries + block_queries - 1) / block_queries;
  if (blocks == 0) return false;
  const Size number = flat_block();
  place.head = number / blocks;
  place.query = unsigned(number % blocks) * block_queries;
  place.rows = min(block_queries, stretch.queries - place.query);
  return place.head < stretch.heads;
}

__device__ unsigned head_size(const Stretch& stretch) { return stretch.sizes & 0xffffu; }
__device__ unsigned value_size(const Stretch& stretch) { return stretch.sizes >> 16; }

// Keys that a query sees, from the first one on.
__device__ unsigned seen_by(const Stretch& stretch, unsigned query) {
  if (stretch.causal == 0) return stretch.keys;
  const unsigned ahead = min(query + 1, stretch.queries) + stretch.keys;
  return ahead > stretch.queries ? ahead - stretch.queries : 0;
}

// What is kept of a query from stretch to stretch: its largest score, the sum of its exponentials, and the sums of its columns.
__device__ float* state_of(float* state, const Stretch& stretch, const Queries& place, unsigned row) {
  return state + (place.head * stretch.queries + place.query + row) * (value_size(stretch) + 2);
}

__device__ float no_score() { return __uint_as_float(0xff800000u); }  // -infinity
