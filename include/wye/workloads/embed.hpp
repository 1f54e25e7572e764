#pragma once
/// Rows of a table by their numbers.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Sets each row of `result` to the row of `table` that a token names.
/// Shape:   a row of `result` for each of `tokens`. `table` and `result` have rows of equal length,
///          row after row. Lengths of rows and their numbers are below 2^31. Without tokens,
///          `result` is empty. `result` does not overlap the other memory. The row of a token that
///          is no row of the table is zeros. This includes 0xffffffff, which can mark padding.
///          Tokens may be on a device, so that no error reports such a token.
/// Bound:   exact, bit for bit.
/// Bits:    the same on all devices.
/// Cost:    reads a row of the table for each token and writes `result` once.
/// Errors:  invalid_argument (a size of `result` that is no multiple of the number of tokens, or a
///          size of `table` that is no multiple of the length of rows; memory that overlaps).
WYE_API Job embed(Read<float> table, Read<std::uint32_t> tokens, Write<float> result);
WYE_API Job embed(Read<half> table, Read<std::uint32_t> tokens, Write<half> result);
WYE_API Job embed(Read<bfloat16> table, Read<std::uint32_t> tokens, Write<bfloat16> result);

namespace reference {
/// The same for rows of `columns` elements, on this thread.
WYE_API std::vector<float> embed(std::span<const float> table, std::span<const std::uint32_t> tokens,
                                 std::uint64_t columns);
WYE_API std::vector<half> embed(std::span<const half> table, std::span<const std::uint32_t> tokens,
                                std::uint64_t columns);
WYE_API std::vector<bfloat16> embed(std::span<const bfloat16> table, std::span<const std::uint32_t> tokens,
                                    std::uint64_t columns);
}  // namespace reference

}  // namespace wye::workloads
