#pragma once
// Selects the first `keep` elements of each tile of longer rows in sorted order, and writes them in the order of their
// columns. Finds the last of them digit by digit, from the highest on.
#include "sort.cuh"

// `places` may be empty: the columns of x. `selected` has `keep` elements of each tile, or fewer of the last tile if it has
// fewer.
template <class Number>
__device__ void select_elements(wye_span<const Number> x, wye_span<const unsigned> places, wye_span<Number> selected,
                                wye_span<unsigned> selected_places, const SortShape& shape) {
  typedef typename SortKey<Number>::Type Key;
  __shared__ unsigned counts[256];
  __shared__ unsigned chosen;   // the digit of the last selected element
  __shared__ unsigned missing;  // elements with that digit to be selected
  const Tile t = tile_of(shape);
  if (t.size == 0) return;  // as the whole block
  const unsigned first = per_thread * threadIdx.x;
  const Number* const tile = x.data + t.first;
  Key keys[per_thread] = {};
  unsigned taken = 0, candidates = 0;  // one bit for each element
#pragma unroll
  for (unsigned j = 0; j < per_thread; ++j)
    if (first + j < t.size) {
      keys[j] = key_of(tile[first + j], shape);
      candidates |= 1u << j;
    }

  unsigned need = min(shape.keep, t.size);
  for (unsigned shift = shape.bits; shift != 0;) {
    shift -= 8;
    counts[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (unsigned j = 0; j < per_thread; ++j)
      if (candidates >> j & 1) atomicAdd(counts + digit_of(keys[j], shift, 255), 1u);
    __syncthreads();
    const unsigned mine = counts[threadIdx.x], before = prefix_of(mine).before;
    if (before < need && need <= before + mine) {
      chosen = threadIdx.x;
      missing = need - before;
    }
    __syncthreads();
    need = missing;
#pragma unroll
    for (unsigned j = 0; j < per_thread; ++j) {
      const unsigned bit = candidates & 1u << j, digit = digit_of(keys[j], shift, 255);
      if (digit < chosen) taken |= bit;
      if (digit != chosen) candidates &= ~bit;
    }
    __syncthreads();
  }

  // Of the elements that are equal to the last one, the first `need`.
  unsigned before = prefix_of(unsigned(__popc(taken)) | unsigned(__popc(candidates)) << 16).before;
  const unsigned last = min(shape.keep, shape.columns - (shape.tiles - 1) * tile_size);
  const Size line = t.row * ((shape.tiles - 1) * shape.keep + last) + t.column / tile_size * shape.keep;
#pragma unroll
  for (unsigned j = 0; j < per_thread; ++j) {
    const unsigned is_taken = taken >> j & 1, is_candidate = candidates >> j & 1;
    const unsigned smaller = before & 0xffffu, equal = before >> 16;
    if (is_taken || (is_candidate && equal < need)) {
      const Size index = line + smaller + min(equal, need);
      selected[index] = tile[first + j];
      selected_places[index] = places.size != 0 ? places[t.first + first + j] : t.column + first + j;
    }
    before += is_taken | is_candidate << 16;
  }
}
