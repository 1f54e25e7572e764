#pragma once
// Prefix sums of the pieces of rows. The threads of a piece process one chunk of it after the other: each adds up four
// adjacent elements and adds the sums of the threads before it, the chunks before and the offset of the piece. Pieces of
// fewer than 256 threads have one chunk.
#include "elements.cuh"

// Four adjacent elements, which one instruction (or two) loads or stores if they are aligned.
template <class Number>
struct alignas(sizeof(Number) < 4 ? 4 * sizeof(Number) : 16) Four {
  Number at[4];
};
template <class Number>
__device__ bool has_fours(const Number* data) {
  return reinterpret_cast<Size>(data) % alignof(Four<Number>) == 0;
}

// Returns the sum of `mine` of the threads of the piece before this one. Sets `all` to the sum over 256 threads.
template <class Term>
__device__ Term sum_before(Term mine, unsigned log2, unsigned chunk, Term& all) {
  const unsigned width = 1u << (log2 < 5 ? log2 : 5), lane = threadIdx.x & (width - 1);
  Term upto = mine;
  for (unsigned reach = 1; reach < width; reach *= 2) {
    const Term other = __shfl_up_sync(0xffffffffu, upto, reach);
    if (lane >= reach) upto = other + upto;
  }
  Term before = __shfl_up_sync(0xffffffffu, upto, 1);
  if (lane == 0) before = 0;
  all = 0;
  if (log2 <= 5) return before;

  // The second half serves odd chunks: a thread may still read the sums of the chunk before.
  __shared__ Term of_warps[2][8];
  const unsigned warp = threadIdx.x / 32, warps = 1u << (log2 - 5), first = warp & ~(warps - 1);
  if (lane == 31) of_warps[chunk % 2][warp] = upto;
  __syncthreads();
  Term of_warps_before = 0;
  for (unsigned i = first; i < first + warps; ++i) {
    if (i == warp) of_warps_before = all;
    all += of_warps[chunk % 2][i];
  }
  return of_warps_before + before;
}

// If there are no `offsets`, those of all pieces are zero.
template <class T>
__device__ void scan_rows(wye_span<const typename T::Number> x, wye_span<const typename T::Term> offsets,
                          wye_span<typename T::Term> sums, RowSplit split, unsigned exclusive) {
  typedef typename T::Number Number;
  typedef typename T::Term Term;
  const Piece p = piece_of(split);
  const Number* const xs = x.data + p.first;
  Term* const to = sums.data + p.first;
  const bool loads_fours = has_fours(xs), stores_fours = has_fours(to);
  Term carry = 0;
  if (p.number < offsets.size) carry = offsets[p.number];
  // All threads of a block have equally many chunks, because they meet at barriers.
  const unsigned longest = min(longest_piece, split.columns);
  for (unsigned chunk = 0; (chunk << split.lanes_log2) * 4 < longest; ++chunk) {
    const unsigned begin = ((chunk << split.lanes_log2) + p.lane) * 4;
    const unsigned count = begin < p.size ? min(p.size - begin, 4u) : 0;
    Four<Number> numbers = {};
    if (loads_fours && count == 4) {
      numbers = *reinterpret_cast<const Four<Number>*>(xs + begin);
    } else {
#pragma unroll
      for (unsigned j = 0; j < 4; ++j)
        if (j < count) numbers.at[j] = xs[begin + j];
    }
    Term upto[5] = {};
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) upto[j + 1] = upto[j] + T::term(numbers.at[j]);
    Term all;
    const Term before = carry + sum_before(upto[4], split.lanes_log2, chunk, all);
    Four<Term> results;
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) results.at[j] = before + (exclusive != 0 ? upto[j] : upto[j + 1]);
    if (stores_fours && count == 4) {
      *reinterpret_cast<Four<Term>*>(to + begin) = results;
    } else {
#pragma unroll
      for (unsigned j = 0; j < 4; ++j)
        if (j < count) to[begin + j] = results.at[j];
    }
    carry += all;
  }
}
