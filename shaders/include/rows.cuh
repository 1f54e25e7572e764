#pragma once
// The distribution of the rows of a matrix over threads, computed by `src/workloads/rows.hpp`.
#include "quads.cuh"

struct RowSplit {
  unsigned rows;
  unsigned columns;
  unsigned lanes_log2;  // 2^lanes_log2 threads work on one piece of a row
  unsigned pieces;      // of one row
};

constexpr unsigned longest_piece = 65536;

struct Piece {
  Size number;      // of all pieces of all rows; those that do not exist have no columns
  Size row;
  Size first;       // its first element of the matrix
  unsigned size;    // its elements
  unsigned lane;    // the index of this thread among those of the piece
  unsigned lanes;
};

__device__ Piece piece_of(RowSplit split) {
  Piece p;
  p.lanes = 1u << split.lanes_log2;
  p.lane = threadIdx.x & (p.lanes - 1);
  p.number = flat_thread() >> split.lanes_log2;
  p.row = p.number / split.pieces;
  const unsigned column = unsigned(p.number - p.row * split.pieces) * longest_piece;
  p.size = min(longest_piece, split.columns - column);
  if (p.row >= split.rows) {
    p.row = 0;
    p.size = 0;
  }
  p.first = p.row * split.columns + column;
  return p;
}

// Calls f with a reference to each of this thread's elements of a piece. If the piece is aligned to 128 bits,
// loads four adjacent elements at a time.
template <class T, class F>
__device__ void each_element(T* piece, Piece p, F f) {
  const unsigned quads = has_quads(piece) ? p.size / 4 : 0;
  for (unsigned i = p.lane; i < quads; i += p.lanes) {
    Quad q = reinterpret_cast<const Quad*>(piece)[i];
    f(q.x);
    f(q.y);
    f(q.z);
    f(q.w);
  }
  for (unsigned i = 4 * quads + p.lane; i < p.size; i += p.lanes) f(piece[i]);
}

// Replaces each of this thread's elements of a piece by f of it.
template <class F>
__device__ void replace_elements(float* piece, Piece p, F f) {
  const unsigned quads = has_quads(piece) ? p.size / 4 : 0;
  for (unsigned i = p.lane; i < quads; i += p.lanes) {
    Quad* const at = reinterpret_cast<Quad*>(piece) + i;
    const Quad q = *at;
    *at = {f(q.x), f(q.y), f(q.z), f(q.w)};
  }
  for (unsigned i = 4 * quads + p.lane; i < p.size; i += p.lanes) piece[i] = f(piece[i]);
}
