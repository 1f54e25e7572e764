#pragma once
/// The distribution of segments of rows over items.
#include <wye/base/extent.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

#include "steps.hpp"

namespace wye::inline v0::workloads {

/// Sums of rows have the same order on all devices: `segment_block` rows at a time, then the sums of
/// the blocks of a stretch. Stretches of `segment_stretch` rows begin with the segment. The sums of
/// `segment_group` stretches are added up at a time, then the sums of the groups, then that of the
/// rows beyond. `shaders/include/segments.glsl` and `.cuh` have the same numbers.
inline constexpr std::uint32_t segment_block = 32, segment_stretch = 512, segment_group = 128;
/// The columns of a piece of a row.
inline constexpr std::uint32_t segment_piece = 1024;

/// A kernel parameter, also declared in `shaders/include/segments.glsl` and `.cuh`.
struct SegmentShape {
  std::uint32_t rows = 0;  ///< of x
  std::uint32_t columns = 0;
  std::uint32_t count = 0;       ///< of rows that the kernel writes: of sums, or of means
  std::uint32_t lanes_log2 = 0;  ///< 2^lanes_log2 items work on one piece
  std::uint32_t pieces = 1;      ///< of one row
  std::uint32_t stretches = 0;   ///< 0: no sums of stretches are computed

  std::uint64_t all_pieces() const { return std::uint64_t{count} * pieces; }
  Extent3 items() const { return flat(all_pieces() << lanes_log2); }
};

/// The rows of a segment. Those before `rest` are in whole stretches, whose sums begin at row
/// `first_sum`: segments that do not overlap have different ones.
struct SegmentRows {
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t rest;
  std::uint32_t first_sum;
};
inline SegmentRows segment_rows(std::span<const std::uint32_t> offsets, std::uint64_t segment,
                                SegmentShape shape) {
  SegmentRows r{};
  r.begin = std::min(offsets[segment], shape.rows);
  r.end = std::clamp(offsets[segment + 1], r.begin, shape.rows);
  r.first_sum = r.begin / segment_stretch;
  r.rest = shape.stretches == 0 ? r.begin : r.end - (r.end - r.begin) % segment_stretch;
  return r;
}

/// Returns the first row of stretch `number`, or `shape.rows` if no segment has it.
inline std::uint32_t stretch_begin(std::span<const std::uint32_t> offsets, std::uint64_t number,
                                   SegmentShape shape) {
  // The last segment that begins in this stretch of x or before.
  std::size_t first = 0, last = offsets.size() - 1;
  while (first < last) {
    const std::size_t middle = (first + last) / 2;
    if (offsets[middle] / segment_stretch <= number)
      first = middle + 1;
    else
      last = middle;
  }
  if (first == 0) return shape.rows;
  const SegmentRows r = segment_rows(offsets, first - 1, shape);
  const std::uint64_t begin = r.begin + (number - r.first_sum) * segment_stretch;
  return begin < r.rest ? static_cast<std::uint32_t>(begin) : shape.rows;
}

}  // namespace wye::workloads
