#pragma once
/// Sorted vectors, and sorted rows of matrices.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

enum class SortOrder : std::uint8_t { ascending, descending };

struct SortOptions {
  SortOrder order = SortOrder::ascending;
  std::optional<std::uint64_t> columns =
      std::nullopt;  ///< of a matrix, whose rows are sorted; unset: a vector
};

/// Sets `sorted` to the elements of `keys` in order, or each of its rows to those of a row of `keys`.
/// Shape:   any number of elements; `sorted` has as many and does not overlap `keys`. Rows have equal length, row after row.
///          Lengths of rows and their number are below 2^31.
/// Bound:   exact, bit for bit. NaN is larger than infinity, all NaN are equal, and so are both zeros. The sort is stable:
///          equal elements keep their order, in descending order too.
/// Bits:    every device gives the same bits.
/// Cost:    rows of up to 2048 elements: one step. Longer rows: passes of 8 bits on GPUs, and on the CPU one distribution to
///          buckets, which are sorted in cache. They take memory of 1 (uint64), 1.13 (32 bits) or 1.25 times `keys`. On two
///          threads, 10 million floats take about 0.7 times as long as Highway's vqsort on one (bench/workloads_bench.cpp).
/// Errors:  invalid_argument (a size that is no multiple of `columns`, sizes that differ, dimensions of 2^31 or more).
/// Source:  Satish, Harris and Garland, Designing efficient sorting algorithms for manycore GPUs, IPDPS 2009.
WYE_API Job sort(Read<float> keys, Write<float> sorted, SortOptions options = {});
WYE_API Job sort(Read<half> keys, Write<half> sorted, SortOptions options = {});
WYE_API Job sort(Read<bfloat16> keys, Write<bfloat16> sorted, SortOptions options = {});
WYE_API Job sort(Read<std::int32_t> keys, Write<std::int32_t> sorted, SortOptions options = {});
WYE_API Job sort(Read<std::uint32_t> keys, Write<std::uint32_t> sorted, SortOptions options = {});
WYE_API Job sort(Read<std::uint64_t> keys, Write<std::uint64_t> sorted, SortOptions options = {});

/// The same, and moves `values` with their keys. If `values` is empty, the values are the columns
/// of the keys.
/// Shape:   `values` has as many elements as `keys`, or none; `sorted_values` has as many.
/// Errors:  invalid_argument (as above).
WYE_API Job sort(Read<float> keys, Read<std::uint32_t> values, Write<float> sorted,
                 Write<std::uint32_t> sorted_values, SortOptions options = {});
WYE_API Job sort(Read<half> keys, Read<std::uint32_t> values, Write<half> sorted,
                 Write<std::uint32_t> sorted_values, SortOptions options = {});
WYE_API Job sort(Read<bfloat16> keys, Read<std::uint32_t> values, Write<bfloat16> sorted,
                 Write<std::uint32_t> sorted_values, SortOptions options = {});
WYE_API Job sort(Read<std::int32_t> keys, Read<std::uint32_t> values, Write<std::int32_t> sorted,
                 Write<std::uint32_t> sorted_values, SortOptions options = {});
WYE_API Job sort(Read<std::uint32_t> keys, Read<std::uint32_t> values, Write<std::uint32_t> sorted,
                 Write<std::uint32_t> sorted_values, SortOptions options = {});
WYE_API Job sort(Read<std::uint64_t> keys, Read<std::uint32_t> values, Write<std::uint64_t> sorted,
                 Write<std::uint32_t> sorted_values, SortOptions options = {});

namespace reference {
/// Returns the columns of the elements of each of `rows` rows in sorted order, on this thread.
WYE_API std::vector<std::uint32_t> sorted_columns(std::span<const float> keys, std::uint64_t rows,
                                                  SortOrder order);
WYE_API std::vector<std::uint32_t> sorted_columns(std::span<const half> keys, std::uint64_t rows,
                                                  SortOrder order);
WYE_API std::vector<std::uint32_t> sorted_columns(std::span<const bfloat16> keys, std::uint64_t rows,
                                                  SortOrder order);
WYE_API std::vector<std::uint32_t> sorted_columns(std::span<const std::int32_t> keys, std::uint64_t rows,
                                                  SortOrder order);
WYE_API std::vector<std::uint32_t> sorted_columns(std::span<const std::uint32_t> keys, std::uint64_t rows,
                                                  SortOrder order);
WYE_API std::vector<std::uint32_t> sorted_columns(std::span<const std::uint64_t> keys, std::uint64_t rows,
                                                  SortOrder order);
}  // namespace reference

}  // namespace wye::workloads
