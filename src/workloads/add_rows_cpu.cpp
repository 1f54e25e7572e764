#include "per_target.hpp"

#include <algorithm>

#include "blocks.hpp"
#include "cpu.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
std::size_t add_rows_part(D d, const float* x, const float* HWY_RESTRICT row, float* to, std::size_t i,
                          std::size_t n) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, row + i)), d, to + i);
  return i;
}
void add_rows_vectors(const float* x, const float* row, float* to, std::size_t n) {
  const std::size_t done = add_rows_part(hn::ScalableTag<float>(), x, row, to, 0, n);
  add_rows_part(hn::CappedTag<float, 1>(), x, row, to, done, n);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {

HWY_EXPORT(add_rows_vectors);

template <class T>
void add_rows(Range range, std::span<T> x, std::span<const T> table, std::span<const std::uint32_t> rows,
              RowSplit split, std::uint32_t table_rows) {
  float wide_x[float_block], wide_row[float_block], wide[float_block];
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    const std::uint64_t row = rows.empty() ? 0 : rows[p.row];
    if (row >= table_rows) continue;
    T* const to = x.data() + p.first;
    const T* const added = table.data() + row * split.columns + (p.first - p.row * split.columns);
    for (std::size_t i = 0; i < p.size; i += float_block) {
      const std::size_t n = std::min<std::size_t>(float_block, p.size - i);
      float* const sums = room_of_floats(to + i, wide);
      HWY_DYNAMIC_DISPATCH(add_rows_vectors)
      (as_floats(to + i, n, wide_x), as_floats(added + i, n, wide_row), sums, n);
      write_floats({sums, n}, to + i);
    }
  }
}
#define WYE_ADD_ROWS(T)                                                                                     \
  template void add_rows(Range, std::span<T>, std::span<const T>, std::span<const std::uint32_t>, RowSplit, \
                         std::uint32_t);
WYE_ADD_ROWS(float)
WYE_ADD_ROWS(half)
WYE_ADD_ROWS(bfloat16)
#undef WYE_ADD_ROWS

}  // namespace wye::workloads::cpu
#endif
