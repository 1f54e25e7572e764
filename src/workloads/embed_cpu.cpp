#include <algorithm>

#include "cpu.hpp"

namespace wye::inline v0::workloads::cpu {

template <class T>
void embed(Range range, std::span<const T> table, std::span<const std::uint32_t> tokens, std::span<T> result,
           RowSplit split, std::uint32_t vocabulary) {
  if (split.columns == 0) return;
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    T* const to = result.data() + p.first;
    if (const std::uint32_t token = tokens[p.row]; token < vocabulary)
      std::copy_n(table.data() + std::uint64_t{token} * split.columns + (p.first - p.row * split.columns),
                  p.size, to);
    else
      std::fill_n(to, p.size, T(0.0f));
  }
}
#define WYE_EMBED(T)                                                                                     \
  template void embed(Range, std::span<const T>, std::span<const std::uint32_t>, std::span<T>, RowSplit, \
                      std::uint32_t);
WYE_EMBED(float)
WYE_EMBED(half)
WYE_EMBED(bfloat16)
#undef WYE_EMBED

}  // namespace wye::workloads::cpu
