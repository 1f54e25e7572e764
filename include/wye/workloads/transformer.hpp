#pragma once
/// Blocks of transformers for batches of sequences: decoders with a cache of keys and values, and
/// encoders.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/workloads/cached_attention.hpp>
#include <wye/workloads/quantized.hpp>
#include <wye/workloads/rope.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// A matrix [outputs, inputs], row after row: either elements, or blocks of quantized elements
/// (`quantize`), which need x of float. Each row is a whole number of blocks.
template <class T>
struct WeightMatrix {
  Read<T> elements = std::span<const T>();
  Read<std::uint8_t> blocks = std::span<const std::uint8_t>();
  Quantization quantization = {};
};

/// Dimensions of a block. Query head h uses key/value head h / (heads / key_value_heads).
struct TransformerShape {
  std::uint64_t width = 0;  ///< of a row of x
  std::uint64_t heads = 0;
  std::uint64_t key_value_heads = 0;  ///< 0: heads
  std::uint64_t head_size = 0;
  std::uint64_t hidden = 0;  ///< width of the feed-forward network
  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

/// Weights of a block of a decoder. The comments give the sizes, with queries = heads head_size and
/// keys = key_value_heads head_size.
template <class T>
struct DecoderWeights {
  Read<T> attention_norm;     ///< width
  WeightMatrix<T> query;      ///< [queries, width]
  WeightMatrix<T> key;        ///< [keys, width]
  WeightMatrix<T> value;      ///< [keys, width]
  WeightMatrix<T> output;     ///< [width, queries]
  Read<T> feed_forward_norm;  ///< width
  WeightMatrix<T> gate;       ///< [hidden, width]
  WeightMatrix<T> up;         ///< [hidden, width]
  WeightMatrix<T> down;       ///< [width, hidden]
};

struct DecoderOptions {
  float epsilon = 1e-5f;                            ///< of both norms, at least 2^-126
  std::optional<RopeOptions> rope = RopeOptions{};  ///< of queries and keys; unset: they are not rotated
  std::optional<float> scale = std::nullopt;        ///< of scores; unset: 1 / sqrt(head_size)
  bool int8_x = false;       ///< products with quantized weights round their other factor to blocks q8_0
  std::uint64_t window = 0;  ///< of `SequenceOptions`: the most keys that a row sees; 0: all
  float softcap = 0;         ///< of `SequenceOptions`: the limit of scores; 0: none
};

/// Weights of a block of an encoder, and their biases.
template <class T>
struct EncoderWeights {
  WeightMatrix<T> query;           ///< [queries, width]
  Read<T> query_bias;              ///< queries
  WeightMatrix<T> key;             ///< [keys, width]
  Read<T> key_bias;                ///< keys
  WeightMatrix<T> value;           ///< [keys, width]
  Read<T> value_bias;              ///< keys
  WeightMatrix<T> output;          ///< [width, queries]
  Read<T> output_bias;             ///< width
  Read<T> attention_norm;          ///< width
  Read<T> attention_norm_bias;     ///< width
  WeightMatrix<T> up;              ///< [hidden, width]
  Read<T> up_bias;                 ///< hidden
  WeightMatrix<T> down;            ///< [width, hidden]
  Read<T> down_bias;               ///< width
  Read<T> feed_forward_norm;       ///< width
  Read<T> feed_forward_norm_bias;  ///< width
};

struct EncoderOptions {
  float epsilon = 1e-12f;                     ///< of both norms, at least 2^-126
  std::optional<float> scale = std::nullopt;  ///< of scores; unset: 1 / sqrt(head_size)
};

/// Runs a block of a decoder with norms before its parts, in place: x += output(attention(rope(query(h)), rope(key(h)),
/// value(h))) with h = rms_norm(x), then x += down(silu(gate(h)) * up(h)) with h = rms_norm(x). Keys and values are appended to
/// the cache as by `cached_attention`. A model is a loop over its blocks: each has weights and a cache, all have the same x,
/// offsets, slots and cached tokens.
///
///     // Each request has one new token, or all tokens of its prompt.
///     for (std::size_t b = 0; b < blocks.size(); ++b)
///       runtime.submit(transformer_block(x, offsets, {keys[b], values[b], slots, cached, 4096}, blocks[b],
///                                        {.width = 576, .heads = 9, .key_value_heads = 3, .head_size = 64, .hidden = 1536}));
///
/// Shape:   x has a row of `width` numbers for each token. `offsets` and the cache are those of `cached_attention` with these
///          heads. `width` and `hidden` are from 1 to 2^20. x, the cache and the weights do not overlap; otherwise the results are
///          undefined.
/// Bound:   those of its parts propagate: intermediate results are rounded to the type of x. If rows of weights have a length of
///          about 1 and numbers of norms are about 1, results are within 2^-17 (float), 2^-6 (half) or 2^-3 (bfloat16) of those in
///          float64, times the root mean square of their row, or times 1 if that is less. After 12 blocks: 2^-15, 2^-5 and 2^-2.
///          Quantized weights count as exact; with `int8_x`, 2^-3 after 1 block. NaN and infinities propagate as in the parts. A
///          row that `cached_attention` leaves out has attention 0.
/// Bits:    the same device gives the same bits for a row, alone and beside any other sequences, and if a sequence comes in one
///          job or in several. Requires a scheduler with `measure_variants` off: otherwise GPUs may choose kernels by the number
///          of rows.
/// Cost:    reads each weight once for up to 4 rows; more rows cost as much as their products. The block uses wye's own kernels,
///          because libraries add in an order that depends on the number of rows. Scratch memory for 3 width + 2 queries + 2 keys +
///          3 hidden elements per row, and that of `cached_attention`. On the CPU, prompts take longer with quantized weights than
///          with floats: weights are converted once per 4 rows.
/// Errors:  invalid_argument (a dimension beyond its limit; sizes that do not match; weights with elements and blocks; blocks with
///          x of 16 bits, of an unknown layout or that no row divides into; and those of `cached_attention`, `rope` and
///          `rms_norm`).
/// Source:  Touvron et al., Llama: open and efficient foundation language models, arXiv:2302.13971, section 2.2. Yu et al., Orca: a
///          distributed serving system for transformer-based generative models, OSDI 2022, section 3: sequences join and leave
///          between steps.
WYE_API Job transformer_block(ReadWrite<float> x, Read<std::uint32_t> offsets, KeyValueCache<float> cache,
                              const DecoderWeights<float>& weights, TransformerShape shape,
                              DecoderOptions options = {});
WYE_API Job transformer_block(ReadWrite<half> x, Read<std::uint32_t> offsets, KeyValueCache<half> cache,
                              const DecoderWeights<half>& weights, TransformerShape shape,
                              DecoderOptions options = {});
WYE_API Job transformer_block(ReadWrite<bfloat16> x, Read<std::uint32_t> offsets,
                              KeyValueCache<bfloat16> cache, const DecoderWeights<bfloat16>& weights,
                              TransformerShape shape, DecoderOptions options = {});

/// Runs a block of an encoder with norms after its parts, in place: x = layer_norm(x +
/// output(attention(query(x), key(x), value(x)))), then x = layer_norm(x + down(gelu(up(x)))). A
/// token sees all tokens of its sequence. Products add their bias.
/// Shape:   as above, without a cache: `offsets` is that of `ragged_attention`.
/// Bound:   as above.
/// Bits:    as above, for whole sequences.
/// Cost:    as above. Quantized weights become floats first, in scratch memory for the largest
///          matrix.
/// Errors:  as above; those of `ragged_attention` and `layer_norm`.
/// Source:  Devlin et al., BERT: pre-training of deep bidirectional transformers, arXiv:1810.04805,
///          section 3.
WYE_API Job transformer_block(ReadWrite<float> x, Read<std::uint32_t> offsets,
                              const EncoderWeights<float>& weights, TransformerShape shape,
                              EncoderOptions options = {});
WYE_API Job transformer_block(ReadWrite<half> x, Read<std::uint32_t> offsets,
                              const EncoderWeights<half>& weights, TransformerShape shape,
                              EncoderOptions options = {});
WYE_API Job transformer_block(ReadWrite<bfloat16> x, Read<std::uint32_t> offsets,
                              const EncoderWeights<bfloat16>& weights, TransformerShape shape,
                              EncoderOptions options = {});

namespace reference {
/// Returns x after the block, in float64, on this thread. Weights are in host memory. There is no
/// cache: each sequence begins with its first token. `int8_x` has no effect.
WYE_API std::vector<double> transformer_block(std::span<const double> x,
                                              std::span<const std::uint32_t> offsets,
                                              const DecoderWeights<float>& weights, TransformerShape shape,
                                              DecoderOptions options = {});
WYE_API std::vector<double> transformer_block(std::span<const double> x,
                                              std::span<const std::uint32_t> offsets,
                                              const DecoderWeights<half>& weights, TransformerShape shape,
                                              DecoderOptions options = {});
WYE_API std::vector<double> transformer_block(std::span<const double> x,
                                              std::span<const std::uint32_t> offsets,
                                              const DecoderWeights<bfloat16>& weights, TransformerShape shape,
                                              DecoderOptions options = {});
WYE_API std::vector<double> transformer_block(std::span<const double> x,
                                              std::span<const std::uint32_t> offsets,
                                              const EncoderWeights<float>& weights, TransformerShape shape,
                                              EncoderOptions options = {});
WYE_API std::vector<double> transformer_block(std::span<const double> x,
                                              std::span<const std::uint32_t> offsets,
                                              const EncoderWeights<half>& weights, TransformerShape shape,
                                              EncoderOptions options = {});
WYE_API std::vector<double> transformer_block(std::span<const double> x,
                                              std::span<const std::uint32_t> offsets,
                                              const EncoderWeights<bfloat16>& weights, TransformerShape shape,
                                              EncoderOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
