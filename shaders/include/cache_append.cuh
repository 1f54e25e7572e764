#pragma once
// Copies rows of k and v to their own rows of a cache, bit for bit. A block has a row.
#include "elements.cuh"

struct CacheRows {
  unsigned rows;
  unsigned key_columns;
  unsigned value_columns;
};

template <class Number>
__device__ void copy_row(const Number* from, Number* to, unsigned columns) {
  constexpr unsigned width = Pack<Number>::width;
  const unsigned packs = has_quads(from) && has_quads(to) ? columns / width : 0;
  for (unsigned i = threadIdx.x; i < packs; i += 256) reinterpret_cast<Pack<Number>*>(to)[i] = pack_at(from, i);
  for (unsigned i = width * packs + threadIdx.x; i < columns; i += 256) to[i] = from[i];
}

// `places` has three words for each row: the last is its own row, if there is one.
template <class Number>
__device__ void append_rows(wye_span<const Number> k, wye_span<const Number> v, wye_span<Number> key_cache,
                            wye_span<Number> value_cache, wye_span<const unsigned> places, CacheRows shape) {
  const Size row = flat_block();
  if (row >= shape.rows) return;
  const unsigned own = places[3 * row + 2];
  if (own == 0xffffffffu) return;
  copy_row(k.data + row * shape.key_columns, key_cache.data + Size(own) * shape.key_columns, shape.key_columns);
  copy_row(v.data + row * shape.value_columns, value_cache.data + Size(own) * shape.value_columns, shape.value_columns);
}
