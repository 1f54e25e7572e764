#pragma once
// Attention: softmax(q k^T scale) v over one stretch of the keys, head by head. A block processes 64 queries
// of one head and computes 128 columns of the result in registers. Shared memory holds one tile of keys and
// values at a time. Further columns take further passes. Source: Dao et al., FlashAttention,
// arXiv:2205.14135.
#include "exponents.cuh"
#include "quads.cuh"

struct Stretch {
  unsigned heads;
  unsigned queries;  // of a head
  unsigned keys;
  unsigned sizes;  // of rows of q and k in the low 16 bits, of rows of v and the result in the high 16 bits
  unsigned first;  // the stretch of the keys: [first, last)
  unsigned last;
  unsigned causal;
  float scale;
};

constexpr unsigned block_queries = 64, pass_columns = 128;

// The queries of this block.
struct Queries {
  Size head;
  unsigned query;  // the first query
  unsigned rows;   // the number of queries
};

// Finds the queries of this block. Returns false if there are none.
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

// Returns the number of keys that a query sees, beginning with key 0.
__device__ unsigned seen_by(const Stretch& stretch, unsigned query) {
  if (stretch.causal == 0) return stretch.keys;
  const unsigned ahead = min(query + 1, stretch.queries) + stretch.keys;
  return ahead > stretch.queries ? ahead - stretch.queries : 0;
}

// Returns the state of a query between stretches: its largest score, the sum of its exponentials, and the
// sums of its columns.
__device__ float* state_of(float* state, const Stretch& stretch, const Queries& place, unsigned row) {
  return state + (place.head * stretch.queries + place.query + row) * (value_size(stretch) + 2);
}

__device__ float no_score() { return __uint_as_float(0xff800000u); }  // -infinity
