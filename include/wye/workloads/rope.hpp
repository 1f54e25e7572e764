#pragma once
/// Rotary position embeddings.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// The elements of a pair of d rotated elements: i and i + d / 2, or 2 i and 2 i + 1.
enum class RopeLayout : std::uint8_t { halves, neighbours };

struct RopeOptions {
  double base = 10000;  ///< finite, at least 2
  RopeLayout layout = RopeLayout::halves;
  std::uint64_t rotated = 0;  ///< elements of a head that are rotated, the first; an even number; 0: all
};

/// Rotates pair i of d rotated elements by the angle a = position * base^(-2 i / d), in place: (x, y) becomes
/// (x cos a - y sin a, x sin a + y cos a).
/// Shape:   `x` has a row for each of `positions`, row after row. A row has heads of `head_size` elements, at most 65,536. Rows and
///          heads of all rows are fewer than 2^31. Without positions, `x` is empty. Positions are any numbers of 32 bits.
/// Bound:   5e-7 (|x| + |y|) for positions below 2^24: angles are products of integers, without their whole turns. Elements of 16
///          bits are computed as float and rounded once. NaN and infinities follow the formula. Numbers below 2^-126 may
///          count as zero. Elements that are not rotated keep their bits.
/// Bits:    the same device gives the same bits for a row, alone or among others.
/// Cost:    reads and writes the rotated elements once. An angle is computed once for each 8 heads of a row.
/// Errors:  invalid_argument (a size of `x` that is no whole number of heads for each position; an option out of its range; an odd
///          number of rotated elements, or more than a head has; too many heads; memory that overlaps).
/// Source:  Su et al., RoFormer: enhanced transformer with rotary position embedding, arXiv:2104.09864, section 3.2.2.
WYE_API Job rope(ReadWrite<float> x, Read<std::uint32_t> positions, std::uint64_t head_size,
                 RopeOptions options = {});
WYE_API Job rope(ReadWrite<half> x, Read<std::uint32_t> positions, std::uint64_t head_size,
                 RopeOptions options = {});
WYE_API Job rope(ReadWrite<bfloat16> x, Read<std::uint32_t> positions, std::uint64_t head_size,
                 RopeOptions options = {});

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> rope(std::span<const float> x, std::span<const std::uint32_t> positions,
                                 std::uint64_t head_size, RopeOptions options = {});
WYE_API std::vector<double> rope(std::span<const half> x, std::span<const std::uint32_t> positions,
                                 std::uint64_t head_size, RopeOptions options = {});
WYE_API std::vector<double> rope(std::span<const bfloat16> x, std::span<const std::uint32_t> positions,
                                 std::uint64_t head_size, RopeOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
