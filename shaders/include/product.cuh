#pragma once
// Products of matrices as kernels are asked for them: c = a b over one stretch of the inner dimension, or from the second
// stretch on, c += a b. A block of 256 threads makes 128 x 128 elements of c.
#include "quads.cuh"

struct Product {
  unsigned rows;  // of c
  unsigned columns;
  unsigned inner;
  unsigned first;  // the stretch: [first, last)
  unsigned last;
  unsigned transposed;  // whether b is given as columns x inner
  unsigned batch;       // matrices
  unsigned unused;
  Size a_step;  // from the first element of a matrix to that of the next
  Size b_step;
  Size c_step;
};

constexpr unsigned tile_side = 128;

// Where this block's tile is: tiles are numbered in blocks of 2 x 2, as the host's blocks of 256 x 256 are, matrix after matrix.
struct Place {
  unsigned row, column;
  Size matrix;
};

// False where there is none.
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
