// Replaces the counts of each digit in the tiles of a row by the sums of the counts before. Writes the total of each digit
// after all counts. One thread for each digit if there are few tiles, otherwise one block.
#include "sort.cuh"

extern "C" __global__ void __launch_bounds__(256) wye_sort_scan(wye_span<unsigned> counts, SortShape shape) {
  const bool is_alone = shape.tiles <= few_tiles;
  const Size line = is_alone ? flat_thread() : flat_block(), digits = Size(shape.rows) * 256;
  if (line >= digits) return;  // as the whole block
  unsigned* const of_tiles = counts.data + line * shape.tiles;
  unsigned sum = 0;
  if (is_alone) {
    for (unsigned i = 0; i < shape.tiles; ++i) {
      const unsigned count = of_tiles[i];
      of_tiles[i] = sum;
      sum += count;
    }
  } else {
    for (unsigned i = 0; i < shape.tiles; i += 256) {
      const unsigned at = i + threadIdx.x;
      const Prefix prefix = prefix_of(at < shape.tiles ? of_tiles[at] : 0);
      if (at < shape.tiles) of_tiles[at] = sum + prefix.before;
      sum += prefix.all;
    }
  }
  if (is_alone || threadIdx.x == 0) counts[digits * shape.tiles + line] = sum;
}
