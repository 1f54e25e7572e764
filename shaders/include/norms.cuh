#pragma once
// All norms of a part of a row. They are computed together; the caller selects one at the end.
#include "elements.cuh"
#include "length.cuh"

struct Norms {
  Squares squares;
  float sum;   // of absolute values
  float most;  // largest absolute value
};

__device__ Norms shuffled(Norms v, int bits) {
  return {shuffled(v.squares, bits), shuffled(v.sum, bits), shuffled(v.most, bits)};
}

// Returns the larger of two numbers that are not negative. NaN is the largest.
__device__ float larger(float a, float b) { return __uint_as_float(max(__float_as_uint(a), __float_as_uint(b))); }

__device__ Norms combine(Norms a, Norms b) {
  return {combine(a.squares, b.squares), a.sum + b.sum, larger(a.most, b.most)};
}

__device__ void add_number(Norms& norms, float v) {
  add_square(norms.squares, v);
  norms.sum += fabsf(v);
  norms.most = larger(norms.most, fabsf(v));
}

// `norm` is a `workloads::Norm`.
__device__ float selected(Norms norms, unsigned norm) {
  return norm == 0 ? norms.sum : norm == 1 ? length_of(norms.squares) : norms.most;
}

// Computes the norm of each piece of rows.
template <class T>
__device__ void norms_of(wye_span<const typename T::Number> x, wye_span<float> results, RowSplit split, unsigned norm) {
  constexpr unsigned width = Pack<typename T::Number>::width;
  const Piece p = piece_of(split);
  const typename T::Number* const xs = x.data + p.first;
  Norms parts[4] = {};
  each_pack<width>(
      p, has_quads(xs) ? p.size / width : 0,
      [&](unsigned i) {
        const auto pack = pack_at(xs, i);
#pragma unroll
        for (unsigned j = 0; j < width; ++j) add_number(parts[j % 4], T::term(pack.at[j]));
      },
      [&](unsigned i, unsigned j) { add_number(parts[j], T::term(xs[i])); });
  const Norms all = team_result(combine(combine(parts[0], parts[1]), combine(parts[2], parts[3])), split.lanes_log2);
  if (p.lane == 0 && p.number < results.size) results[p.number] = selected(all, norm);
}
