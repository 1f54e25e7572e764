#pragma once
// Rows times factors, in place. Elements of 16 bits are multiplied in float32 and rounded.
#include "elements.cuh"

struct Factor {
  unsigned low, high;
};

__device__ unsigned product_of(FloatElement, unsigned bits, float factor) {
  return __float_as_uint(__fmul_rn(__uint_as_float(bits), factor));
}
template <class T>
__device__ unsigned short product_of(T, unsigned short bits, float factor) {
  return T::rounded(__fmul_rn(T::term(bits), factor));
}
__device__ unsigned product_of(WordElement, unsigned bits, unsigned factor) { return bits * factor; }
__device__ Size product_of(Uint64Element, Size bits, Size factor) { return bits * factor; }

// If there are no `factors`, all rows have the factor `a`.
template <class T>
__device__ void scale_rows(wye_span<const typename T::Number> factors, wye_span<typename T::Number> x, RowSplit split,
                           Factor a) {
  typedef typename T::Number Number;
  constexpr unsigned width = Pack<Number>::width;
  const Piece p = piece_of(split);
  if (p.size == 0) return;
  const Number bits = factors.size == 0 ? Number(a.low | Size(a.high) << 32) : factors[p.row];
  const typename T::Term factor = T::term(bits);
  Number* const xs = x.data + p.first;
  each_pack<width>(
      p, has_quads(xs) ? p.size / width : 0,
      [&](unsigned i) {
        Pack<Number> pack = pack_at(xs, i);
#pragma unroll
        for (unsigned j = 0; j < width; ++j) pack.at[j] = product_of(T(), pack.at[j], factor);
        reinterpret_cast<Pack<Number>*>(xs)[i] = pack;
      },
      [&](unsigned i, unsigned) { xs[i] = product_of(T(), xs[i], factor); });
}
