#include "per_target.hpp"

#include <algorithm>

#include "cpu.hpp"
#include "row_adder.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {

float add_sparse_block(std::span<const std::uint32_t> columns, const float* values, std::span<const float> x,
                       std::uint32_t first) {
  return RowAdder(x.data(), static_cast<std::uint32_t>(x.size()), values, {}, columns)
      .sum_of(first, first + csr_block);
}

/// Sets `y[row]` for all rows [first, last). Uses the blocks that a long row has as a whole.
void add_sparse_rows(std::span<const std::uint32_t> offsets, std::span<const std::uint32_t> columns,
                     const float* values, std::span<const float> x, const float* blocks, float* y,
                     std::uint64_t first, std::uint64_t last) {
  RowAdder adder(x.data(), static_cast<std::uint32_t>(x.size()), values, offsets, columns);
  const auto sum_of_many = [&](std::uint32_t begin, std::uint32_t end) {
    if (end - begin < 2 * csr_block) return adder.sum_of(begin, end);
    const std::uint32_t whole = begin / csr_block + (begin % csr_block == 0 ? 0 : 1);
    const std::uint32_t whole_end = end / csr_block;
    double sum = double{adder.sum_of(begin, whole * csr_block)};
    for (std::uint32_t i = whole; i < whole_end; ++i) sum += double{blocks[i]};
    return static_cast<float>(sum + double{adder.sum_of(whole_end * csr_block, end)});
  };
  adder.add(first, static_cast<std::size_t>(last - first), y + first, sum_of_many);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(add_sparse_block);
HWY_EXPORT(add_sparse_rows);

/// Returns the last row from `row` on that begins at element `first` or before, in steps that
/// double: the next row is near.
std::size_t row_of(std::span<const std::uint32_t> offsets, std::size_t row, std::uint32_t first) {
  const std::size_t rows = offsets.size() - 1;
  std::size_t step = 1;
  while (row + step < rows && offsets[row + step] <= first) {
    row += step;
    step *= 2;
  }
  const auto begin = offsets.begin() + static_cast<std::ptrdiff_t>(row) + 1;
  const auto end = offsets.begin() + static_cast<std::ptrdiff_t>(std::min(row + step, rows));
  return row + static_cast<std::size_t>(std::upper_bound(begin, std::max(begin, end), first) - begin);
}

}  // namespace

/// Level 1 is for GPUs: here, the sums of a row's blocks are added up in double precision.
void csr_multiply_blocks(Range range, std::span<const std::uint32_t> offsets,
                         std::span<const std::uint32_t> columns, std::span<const float> values,
                         std::span<const float> x, std::span<float> blocks, std::uint32_t level) {
  if (offsets.size() < 2 || level != 0) return;
  const Range items = below(range, values.size() / csr_block << 8);
  std::size_t row = 0;
  for (std::uint64_t block = items.first >> 8; block < items.last >> 8; ++block) {
    const auto first = static_cast<std::uint32_t>(block * csr_block);
    row = row_of(offsets, row, first);
    if (offsets[row + 1] - first >= csr_block)
      blocks[block] = HWY_DYNAMIC_DISPATCH(add_sparse_block)(columns, values.data(), x, first);
  }
}

void csr_multiply(Range range, std::span<const std::uint32_t> offsets, std::span<const std::uint32_t> columns,
                  std::span<const float> values, std::span<const float> x, std::span<const float> blocks,
                  std::span<float> y, std::uint32_t lanes_log2) {
  const Range items = below(range, y.size() << lanes_log2);
  HWY_DYNAMIC_DISPATCH(add_sparse_rows)
  (offsets, columns, values.data(), x, blocks.data(), y.data(), items.first >> lanes_log2,
   items.last >> lanes_log2);
}

}  // namespace wye::workloads::cpu
#endif
