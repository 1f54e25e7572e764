#pragma once
/// Weights of 4 and 8 bits in blocks, and products with them.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// The layout of a block. A block of n elements begins with a scale d of type half. All numbers are little-endian.
///
///     type   n             after d            integers q                        element      bytes
///     q4_0   32            -                  4 bits, 0 to 15                   d (q - 8)    18
///     q4_1   32            half m             4 bits, 0 to 15                   d q + m      20
///     q8_0   32            -                  8 bits, -128 to 127               d q          34
///     int4   32, 64, 128   int16 zero point z 4 bits, 0 to 15                   d (q - z)    4 + n / 2
///     int8   32, 64, 128   int16 zero point z 8 bits, -128 to 127               d (q - z)    4 + n
///
/// Byte i of integers of 4 bits has element i in its low bits and element i + n / 2 in its high bits. The first three
/// types are those of ggml and of GGUF files.
enum class BlockType : std::uint8_t { q4_0, q4_1, q8_0, int4, int8 };

/// The type of blocks and their number of elements: 32, or for int4 and int8 also 64 or 128.
struct Quantization {
  BlockType type = BlockType::q4_0;
  std::uint32_t group = 32;
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

/// Returns the number of bytes of one block.
constexpr std::uint64_t block_bytes(Quantization q) {
  const bool wide = q.type == BlockType::q8_0 || q.type == BlockType::int8;
  const bool scale_only = q.type == BlockType::q4_0 || q.type == BlockType::q8_0;
  return (scale_only ? 2u : 4u) + std::uint64_t{q.group} / (wide ? 1 : 2);
}

/// Sets `blocks` to the quantized elements of `x`.
/// Shape:   a whole number of blocks. Rows of a matrix are contiguous; each is a whole number of blocks.
/// Bound:   q4_0, q4_1 and q8_0 have the bits of ggml's reference. For int4 and int8 an element is within d + 2^-17 of the
///          element of `x`, if d is below 65504; larger elements saturate. A block with NaN, an infinity or a range beyond float
///          gets the scale NaN. A block whose range is below 2^-100 counts as zeros.
/// Bits:    all devices give the same bits, if numbers of `x` are zero or at least 2^-126.
/// Cost:    reads `x` twice.
/// Errors:  invalid_argument (an unknown type; a group of another size; no whole number of blocks; sizes that disagree).
WYE_API Job quantize(Read<float> x, Write<std::uint8_t> blocks, Quantization quantization = {});

/// Sets `x` to the elements of `blocks`.
/// Shape:   as above.
/// Bound: exact, but for q4_1: d q + m is rounded once. A scale that is NaN or infinite follows
/// IEEE 754.
/// Bits:    all devices give the same bits, but for those of NaN.
/// Cost:    reads `blocks` once and writes `x` once.
/// Errors:  as above.
WYE_API Job dequantize(Read<std::uint8_t> blocks, Write<float> x, Quantization quantization = {});

/// The precision of products with quantized weights.
struct QuantizedMatmulOptions {
  /// Rounds x to blocks q8_0, so that the products of blocks are sums of integers.
  bool int8_x = false;
};

/// Sets y to x times the transpose of the weights: `y` has rows of one number for each row of the weights.
/// Shape:   `x` has `rows` rows, `y` has `rows` rows. The weights have as many rows as `y` has columns, row after row, each a
///          whole number of blocks and as long as a row of `x`. At most 2^20 elements per row and 2^31 - 1 numbers of y.
/// Bound:   (inner + 8) 2^-24 |x| |w|, w the dequantized weights; for q4_1, |w| is |d q| + |m|. NaN and infinities propagate as
///          in sums of products. With `int8_x`, 2^-7 times the sum of |w| in each 32 elements of a row, times the largest |x| of
///          these, more, and 2^-18 times the sum of |w|; NaN and infinities of x make the row NaN, elements above 2^23 may.
/// Bits:    the same device gives the same bits. On GPUs the bits of a row do not depend on the other rows or their number. On
///          the CPU neither, but without `int8_x` products of up to 8 rows add in another order than those of more rows.
/// Cost:    on the CPU, up to 8 rows read the weights once per 4 rows; more rows cost as much as `matmul` of floats. On GPUs,
///          reads the weights once per 4 rows. `int8_x` needs 1.06 bytes of scratch memory per element of x.
/// Errors:  invalid_argument (as above; rows that no block divides; sizes that disagree or exceed the limits).
WYE_API Job quantized_matmul(Read<float> x, Read<std::uint8_t> weights, Write<float> y, std::uint64_t rows,
                             Quantization quantization = {}, QuantizedMatmulOptions options = {});

namespace reference {
/// The same on this thread, one element after the other. Lengths are whole numbers of blocks.
WYE_API std::vector<std::uint8_t> quantize(std::span<const float> x, Quantization quantization);
WYE_API std::vector<float> dequantize(std::span<const std::uint8_t> blocks, Quantization quantization);
/// The same in float64, of the exact weights. With `sizes`, of absolute values, as in the bound.
WYE_API std::vector<double> quantized_matmul(std::span<const float> x, std::span<const std::uint8_t> weights,
                                             std::uint64_t rows, Quantization quantization,
                                             bool sizes = false);
}  // namespace reference

}  // namespace wye::workloads
