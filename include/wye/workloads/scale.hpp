#pragma once
/// Vectors and rows of matrices times a factor.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Multiplies each element of `x` by `a`, in place.
/// Shape:   any number of elements below 2^31.
/// Bound:   each product is rounded once, to nearest, ties to even. NaN and infinities propagate. Numbers and products
///          below 2^-126 may count as zero. Integers are exact modulo 2^bits.
/// Bits:    the same device gives the same bits.
/// Cost:    reads and writes `x` once.
/// Errors:  invalid_argument (2^31 elements or more).
WYE_API Job scale(float a, ReadWrite<float> x);
WYE_API Job scale(half a, ReadWrite<half> x);
WYE_API Job scale(bfloat16 a, ReadWrite<bfloat16> x);
WYE_API Job scale(std::int32_t a, ReadWrite<std::int32_t> x);
WYE_API Job scale(std::uint32_t a, ReadWrite<std::uint32_t> x);
WYE_API Job scale(std::uint64_t a, ReadWrite<std::uint64_t> x);

/// Multiplies each row of `x` by one of `factors`, in place.
/// Shape:   one factor for each row. `x` has rows of equal length, row after row. Lengths of rows
///          and their number are below 2^31. Without factors, `x` is empty.
/// Errors:  invalid_argument (a size of `x` that is no multiple of the number of factors).
WYE_API Job scale(Read<float> factors, ReadWrite<float> x);
WYE_API Job scale(Read<half> factors, ReadWrite<half> x);
WYE_API Job scale(Read<bfloat16> factors, ReadWrite<bfloat16> x);
WYE_API Job scale(Read<std::int32_t> factors, ReadWrite<std::int32_t> x);
WYE_API Job scale(Read<std::uint32_t> factors, ReadWrite<std::uint32_t> x);
WYE_API Job scale(Read<std::uint64_t> factors, ReadWrite<std::uint64_t> x);

namespace reference {
/// The same for one factor of each row, on this thread: in float64, or exact modulo 2^bits.
WYE_API std::vector<double> scale(std::span<const float> factors, std::span<const float> x);
WYE_API std::vector<double> scale(std::span<const half> factors, std::span<const half> x);
WYE_API std::vector<double> scale(std::span<const bfloat16> factors, std::span<const bfloat16> x);
WYE_API std::vector<std::int32_t> scale(std::span<const std::int32_t> factors,
                                        std::span<const std::int32_t> x);
WYE_API std::vector<std::uint32_t> scale(std::span<const std::uint32_t> factors,
                                         std::span<const std::uint32_t> x);
WYE_API std::vector<std::uint64_t> scale(std::span<const std::uint64_t> factors,
                                         std::span<const std::uint64_t> x);
}  // namespace reference

}  // namespace wye::workloads
