#pragma once
/// Transposes of matrices.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Sets `y` to the transpose of each matrix of `x`.
/// Shape:   `x` is `batch` matrices of rows x `columns`, row after row and without gaps; `y` has
///          the same number of matrices of `columns` x rows. `x` and `y` do not overlap.
/// Bound:   exact, bit for bit, NaN too.
/// Bits:    every device gives the same bits.
/// Cost:    reads and writes each element once. On Vulkan, words that two rows of `y` share are
///          written with atomic operations.
/// Errors:  invalid_argument (a size that is no multiple of `columns` times `batch`, sizes that
///          differ, a batch of no matrix, dimensions of 2^31 or more).
WYE_API Job transpose(Read<float> x, Write<float> y, std::uint64_t columns, std::uint64_t batch = 1);
WYE_API Job transpose(Read<half> x, Write<half> y, std::uint64_t columns, std::uint64_t batch = 1);
WYE_API Job transpose(Read<bfloat16> x, Write<bfloat16> y, std::uint64_t columns, std::uint64_t batch = 1);
WYE_API Job transpose(Read<std::int8_t> x, Write<std::int8_t> y, std::uint64_t columns,
                      std::uint64_t batch = 1);
WYE_API Job transpose(Read<std::int32_t> x, Write<std::int32_t> y, std::uint64_t columns,
                      std::uint64_t batch = 1);
WYE_API Job transpose(Read<std::uint32_t> x, Write<std::uint32_t> y, std::uint64_t columns,
                      std::uint64_t batch = 1);

namespace reference {
/// Returns the transpose of each matrix, on this thread.
template <class T>
std::vector<T> transpose(std::span<const T> x, std::uint64_t columns, std::uint64_t batch = 1) {
  std::vector<T> y(x.size());
  const std::uint64_t rows = x.empty() ? 0 : x.size() / batch / columns;
  for (std::uint64_t n = 0; rows != 0 && n < batch; ++n)
    for (std::uint64_t row = 0; row < rows; ++row)
      for (std::uint64_t column = 0; column < columns; ++column)
        y[(n * columns + column) * rows + row] = x[(n * rows + row) * columns + column];
  return y;
}
}  // namespace reference

}  // namespace wye::workloads
