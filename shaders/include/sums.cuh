#pragma once
// Sums of the pieces of rows. A thread adds at most 64 terms to each of its four sums, which bounds the rounding error.
#include "elements.cuh"
#include "team.cuh"

template <class Term>
struct Sum {
  Term value;
};
template <class Term>
__device__ Sum<Term> shuffled(Sum<Term> v, int bits) {
  return {__shfl_xor_sync(0xffffffffu, v.value, bits)};
}
template <class Term>
__device__ Sum<Term> combine(Sum<Term> a, Sum<Term> b) {
  return {a.value + b.value};
}

template <class Term>
__device__ void write_sum(wye_span<Term> sums, const Term (&parts)[4], Piece p, RowSplit split) {
  const Sum<Term> mine = {(parts[0] + parts[1]) + (parts[2] + parts[3])};
  const Sum<Term> all = team_result(mine, split.lanes_log2);
  if (p.lane == 0 && p.number < sums.size) sums[p.number] = all.value;
}

// Computes the sums of the elements of x.
template <class T>
__device__ void sum_rows(wye_span<const typename T::Number> x, wye_span<typename T::Term> sums, RowSplit split) {
  constexpr unsigned width = Pack<typename T::Number>::width;
  const Piece p = piece_of(split);
  const typename T::Number* const xs = x.data + p.first;
  typename T::Term parts[4] = {};
  each_pack<width>(
      p, has_quads(xs) ? p.size / width : 0,
      [&](unsigned i) {
        const auto pack = pack_at(xs, i);
#pragma unroll
        for (unsigned j = 0; j < width; ++j) parts[j % 4] += T::term(pack.at[j]);
      },
      [&](unsigned i, unsigned j) { parts[j] += T::term(xs[i]); });
  write_sum(sums, parts, p, split);
}

// Computes the sums of the products of the elements of x and y.
template <class T>
__device__ void sum_products(wye_span<const typename T::Number> x, wye_span<const typename T::Number> y,
                             wye_span<typename T::Term> sums, RowSplit split) {
  constexpr unsigned width = Pack<typename T::Number>::width;
  const Piece p = piece_of(split);
  const typename T::Number *const xs = x.data + p.first, *const ys = y.data + p.first;
  typename T::Term parts[4] = {};
  each_pack<width>(
      p, has_quads(xs) && has_quads(ys) ? p.size / width : 0,
      [&](unsigned i) {
        const auto a = pack_at(xs, i), b = pack_at(ys, i);
#pragma unroll
        for (unsigned j = 0; j < width; ++j) parts[j % 4] = add_product(parts[j % 4], T::term(a.at[j]), T::term(b.at[j]));
      },
      [&](unsigned i, unsigned j) { parts[j] = add_product(parts[j], T::term(xs[i]), T::term(ys[i])); });
  write_sum(sums, parts, p, split);
}
