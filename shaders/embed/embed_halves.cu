// Rows of a table with elements of 16 bits.
#include "embed.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_embed_halves(wye_span<const unsigned short> table, wye_span<const unsigned> tokens, wye_span<unsigned short> result, RowSplit split, unsigned vocabulary) {
  embed_rows<unsigned short>(table, tokens, result, split, vocabulary);
}
