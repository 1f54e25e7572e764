#pragma once
/// The largest or smallest elements of vectors, and of the rows of matrices, in order.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/workloads/sort.hpp>

#include <cstdint>
#include <optional>

namespace wye::inline v0::workloads {

struct TopKOptions {
  SortOrder order = SortOrder::descending;  ///< descending: the largest; ascending: the smallest
  std::optional<std::uint64_t> columns =
      std::nullopt;  ///< of a matrix, each of whose rows has results; unset: a vector
};

/// Sets `values` to the first `k` elements of `x` in order, or of each of its rows, and `places` to their columns.
/// Shape:   `x` has rows of equal length, row after row; `values` and `places` have `k` elements for each row. Lengths of
///          rows and their number are below 2^31. `k` is from 0 to the length of a row.
/// Bound:   exact, bit for bit. NaN is larger than infinity, all NaN are equal, and so are both zeros. Of equal elements,
///          the smaller column is first.
/// Bits:    every device gives the same bits.
/// Cost:    k of up to 1024: reads `x` once, and k elements of every 2048 several times. Larger k: sorts `x` with its columns.
/// Errors:  invalid_argument (a size of `x` that is no multiple of `columns`, `k` above the length of a row, a size of
///          `values` or `places` that is not `k` times the rows, dimensions of 2^31 or more).
WYE_API Job top_k(std::uint64_t k, Read<float> x, Write<float> values, Write<std::uint32_t> places,
                  TopKOptions options = {});
WYE_API Job top_k(std::uint64_t k, Read<half> x, Write<half> values, Write<std::uint32_t> places,
                  TopKOptions options = {});
WYE_API Job top_k(std::uint64_t k, Read<bfloat16> x, Write<bfloat16> values, Write<std::uint32_t> places,
                  TopKOptions options = {});
WYE_API Job top_k(std::uint64_t k, Read<std::int32_t> x, Write<std::int32_t> values,
                  Write<std::uint32_t> places, TopKOptions options = {});
WYE_API Job top_k(std::uint64_t k, Read<std::uint32_t> x, Write<std::uint32_t> values,
                  Write<std::uint32_t> places, TopKOptions options = {});
WYE_API Job top_k(std::uint64_t k, Read<std::uint64_t> x, Write<std::uint64_t> values,
                  Write<std::uint32_t> places, TopKOptions options = {});

namespace reference {
/// Returns the columns of the first `k` elements of each of `rows` rows in sorted order, on this
/// thread.
template <class T>
std::vector<std::uint32_t> top_k_columns(std::uint64_t k, std::span<const T> x, std::uint64_t rows,
                                         SortOrder order) {
  const std::vector<std::uint32_t> all = sorted_columns(x, rows, order);
  std::vector<std::uint32_t> first;
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint64_t i = 0; i < k; ++i) first.push_back(all[row * (x.size() / rows) + i]);
  return first;
}
}  // namespace reference

}  // namespace wye::workloads
