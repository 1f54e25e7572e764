#pragma once
/// Attention of queries to keys and values, without a matrix of scores in memory.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Each head has `queries` rows of q and out, and `keys` rows of k and v. The rows of q and k have
/// `head_size` numbers, the rows of v and out `value_size`.
struct AttentionShape {
  std::uint64_t heads = 0;  ///< of all sequences of a batch together
  std::uint64_t queries = 0;
  std::uint64_t keys = 0;
  std::uint64_t head_size = 0;
  std::uint64_t value_size = 0;  ///< 0: head_size
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

struct AttentionOptions {
  std::optional<float> scale = std::nullopt;  ///< of scores; unset: 1 / sqrt(head_size)
  /// The last query sees all keys, the one before it all but the last, and so on: query i those
  /// below i + 1 + keys - queries.
  bool causal = false;
  /// Added to the scaled scores: [queries, keys] for all heads, or [heads, queries, keys]. A query
  /// does not see a key whose mask is -infinity. With `causal`, it sees the keys that both let it
  /// see.
  std::optional<Read<float>> mask = std::nullopt;
};

/// Sets out to softmax(q k^T scale + mask) v, head by head; the softmax is over the keys that a query sees.
/// Shape:   head after head, row after row. Head and value sizes from 1 to 256; other dimensions below 2^31. A query that sees
///          no key gets zeros.
/// Bound:   (5e-5 + 2 e + (keys + 2) 2^-23) (w |v|) of each number, w being its weights, and e how far its scores may be off:
///          (head_size + 4) 2^-23 times the largest |scale| (|q| |k|) among them, and 2^-23 times the largest finite |mask|.
///          Values are added up before they are divided by the sum of the exponentials, the largest of which is 1: from 2^128 on
///          that is infinity.
///          A query with a score that is NaN or +infinity becomes NaN. Otherwise a score of -infinity has the weight 0. A query
///          with no other scores becomes NaN, and with a mask zeros. NaN and infinities of v count if their weight is not 0. If it
///          is 0, or below exp(-87) of the query's largest, they may make NaN in their column or not. The k and v of a key
///          that a query does not see have no effect on it.
/// Bits:    the same device gives the same bits.
/// Cost:    memory for inputs and outputs, and beyond 16,384 keys 4 (value_size + 2) bytes per query. One pass over the
///          keys for 64 queries at least (bench/workloads_bench.cpp); on CUDA two if value_size is above 128. With a mask, CUDA
///          uses no tensor cores. On Vulkan there are two kernels, which add in the same order. GPUs measure both (`fastest_of`).
///          With `measure_variants` off they use the kernel with tiles in shared memory. CPUs always use the other kernel.
/// Errors:  invalid_argument (sizes that do not match the shape, a head size, value size or dimension beyond its limit, a scale
///          that is not finite).
/// Source:  Dao et al., FlashAttention, arXiv:2205.14135; Milakov and Gimelshein, Online normalizer calculation for softmax,
///          arXiv:1805.02867.
WYE_API Job attention(Read<float> q, Read<float> k, Read<float> v, Write<float> out, AttentionShape shape,
                      AttentionOptions options = {});

/// The same for numbers of 16 bits. Computes in float32, with these exceptions.
/// Bound:   weights may be rounded to the type before they meet v: of half, 2^-11 (w |v|) + 2^-25 (sum of |v|) more, of bfloat16
///          2^-8 (w |v|). Each number of out is rounded once, at the end: of half 2^-11 |out| + 2^-25 more, and infinity from 65520
///          on; of bfloat16 2^-8 |out|. Of bfloat16, numbers and products below 2^-126 may count as zero. NVIDIA documents no bound
///          for cuDNN. By cuDNN, NaN and infinities of v of a key that a query does not see may make NaN in their column, too,
///          and a query with no scores but -infinity may become zeros.
/// Bits:    on CUDA there are two kernels and cuDNN, each of which gives the same bits on the same device. Autotuning selects one
///          (`fastest_of`). With `measure_variants` off the kernel is always the same, and not cuDNN's.
/// Cost:    on CUDA autotuning decides for the device and size whether tensor cores are used (for bfloat16 from Ampere on), or
///          cuDNN, if it is installed. That needs cuDNN 9.13.1, causal 9.21, and Ampere or newer. Sizes of heads and values are
///          multiples of 8, and operands begin at multiples of 16 bytes. The limits are 16,384 keys, 65,535 heads, and below
///          2^31 numbers of an operand. The scale is above 0, there is no mask, and causal queries are not more than the
///          keys. A lane that uses cuDNN for sizes the first time compiles a kernel, which takes about a second. A process
///          uses it for the first 64 different sizes. A job that cuDNN may compute has 4 KiB of memory for it. On the CPU the
///          numbers are converted to float32, a tile at a time.
WYE_API Job attention(Read<half> q, Read<half> k, Read<half> v, Write<half> out, AttentionShape shape,
                      AttentionOptions options = {});
WYE_API Job attention(Read<bfloat16> q, Read<bfloat16> k, Read<bfloat16> v, Write<bfloat16> out,
                      AttentionShape shape, AttentionOptions options = {});

namespace reference {
/// The same in float64, on the calling thread. A mask is host memory.
WYE_API std::vector<double> attention(std::span<const float> q, std::span<const float> k,
                                      std::span<const float> v, AttentionShape shape,
                                      AttentionOptions options = {});
WYE_API std::vector<double> attention(std::span<const half> q, std::span<const half> k,
                                      std::span<const half> v, AttentionShape shape,
                                      AttentionOptions options = {});
WYE_API std::vector<double> attention(std::span<const bfloat16> q, std::span<const bfloat16> k,
                                      std::span<const bfloat16> v, AttentionShape shape,
                                      AttentionOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
