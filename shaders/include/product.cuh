#pragma once
// Products of matrices: c = a b over the first stretch of the inner dimension, c += a b over others, then the epilogue.
// A block of 256 threads computes 128 x 128 elements of c.
#include "quads.cuh"

struct Product {
  unsigned rows;  // of c
  unsigned columns;
  unsigned inner;
  unsigned first;  // the stretch: [first, last)
  unsigned last;
  unsigned transposed_a;  // whether a is given as inner x rows
  unsigned transposed_b;  // whether b is given as columns x inner
  unsigned batch;         // matrices
  unsigned activation;    // of the epilogue
  float scale;
  Size a_step;  // elements between the beginnings of matrices
  Size b_step;
  Size c_step;
};

constexpr unsigned tile_side = 128;

// The position of this block's tile. Tiles are numbered in groups of 2 x 2, which are the host's blocks of
// 256 x 256, matrix after matrix.
struct Place {
  unsigned row, column;
  Size matrix;
};

// Finds the tile of this block. Returns false if there is none.
__device__ bool find_place(const Product& shape, Place& place) {
  const Size number = flat_block(), block = number / 4;
  const unsigned across = (shape.columns + 2 * tile_side - 1) / (2 * tile_side);
  const unsigned blocks = across * ((shape.rows + 2 * tile_side - 1) / (2 * tile_side));
  if (blocks == 0) return false;
  const unsigned at = unsigned(block % blocks);
  place.matrix = block / blocks;
  place.row = (at / across * 2 + unsigned(number / 2 % 2)) * tile_side;
  place.column = (at % across * 2 + unsigned(number % 2)) * tile_side;
  return place.matrix < shape.batch && place.row < shape.rows && place.column < shape.columns;
}
