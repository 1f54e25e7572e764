// Rows of a table with elements of 32 bits.
#include "embed.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_embed_words(wye_span<const unsigned> table, wye_span<const unsigned> tokens, wye_span<unsigned> result, RowSplit split, unsigned vocabulary) {
  embed_rows<unsigned>(table, tokens, result, split, vocabulary);
}
