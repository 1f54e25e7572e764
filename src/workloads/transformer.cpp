#include <wye/workloads/transformer.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cached_rows.hpp"
#include "recipes.hpp"
#include "row_norm.hpp"
#include "rows.hpp"
#include "sequences.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

using Refusal = std::optional<std::string>;

constexpr const char *block_name = "transformer_block", *of_block = " of workload 'transformer_block' ";

/// The most elements of a row of weights: that of `quantized_matmul`.
constexpr std::uint64_t most_inputs = std::uint64_t{1} << 20;

/// A matrix of weights with its name and dimensions.
template <class T>
struct NamedMatrix {
  const char* name;
  const WeightMatrix<T>& matrix;
  std::uint64_t outputs;
  std::uint64_t inputs;

  bool quantized() const { return matrix.blocks.size() != 0; }
};
/// A vector of weights with its name and size.
template <class T>
struct NamedVector {
  const char* name;
  const Read<T>& numbers;
  std::uint64_t size;
};

std::string named_weights(const char* name, std::uint64_t size, const char* unit) {
  return std::string("Weights '") + name + "' (" + std::to_string(size) + " " + unit + ")" + of_block;
}

template <class T>
Refusal refusal_of_matrix(const NamedMatrix<T>& m) {
  const std::string dimensions = std::to_string(m.outputs) + " x " + std::to_string(m.inputs) + " elements.";
  const std::uint64_t size = m.matrix.elements.size(), bytes = m.matrix.blocks.size();
  if (!m.quantized()) {
    if (size == m.outputs * m.inputs) return std::nullopt;
    return named_weights(m.name, size, "elements") + "are not " + dimensions;
  }
  if (size != 0) return named_weights(m.name, size, "elements") + "also have blocks.";
  if constexpr (!std::is_same_v<T, float>)
    return named_weights(m.name, bytes, "bytes") + "are quantized, which requires x of float.";
  const Quantization q = m.matrix.quantization;
  if (auto why = no_layout(block_name, q)) return why;
  if (m.inputs % q.group != 0)
    return named_weights(m.name, bytes, "bytes") + "have rows of " + std::to_string(m.inputs) +
           " elements, which are no whole number of blocks of " + std::to_string(q.group) + ".";
  if (bytes == m.outputs * (m.inputs / q.group) * block_bytes(q)) return std::nullopt;
  return named_weights(m.name, bytes, "bytes") + "are not the " +
         std::to_string(m.outputs * (m.inputs / q.group) * block_bytes(q)) + " bytes of " + dimensions;
}

/// Returns the reason if dimensions or sizes are invalid.
template <class T>
Refusal refusal_of_weights(std::uint64_t x, const TransformerShape& shape,
                           const std::vector<NamedMatrix<T>>& matrices,
                           const std::vector<NamedVector<T>>& vectors) {
  for (const auto& [name, size] : {std::pair{"Width", shape.width}, {"Hidden width", shape.hidden}})
    if (size == 0 || size > most_inputs)
      return std::string(name) + " (" + std::to_string(size) + ")" + of_block + "is not between 1 and " +
             std::to_string(most_inputs) + ".";
  if (x % shape.width != 0)
    return "Matrix x (" + std::to_string(x) + " elements)" + of_block + "has no whole number of rows of " +
           std::to_string(shape.width) + ".";
  for (const NamedMatrix<T>& m : matrices)
    if (auto why = refusal_of_matrix(m)) return why;
  for (const NamedVector<T>& v : vectors)
    if (v.numbers.size() != v.size)
      return named_weights(v.name, v.numbers.size(), "elements") + "are not " + std::to_string(v.size) +
             " elements.";
  return std::nullopt;
}

/// The steps of a block, until one of them refuses its arguments.
template <class T>
class BlockSteps {
 public:
  explicit BlockSteps(std::uint64_t rows) : rows_(rows) {}

  Steps& steps() { return steps_; }
  void keep(Refusal why) {
    if (!refusal_) refusal_ = std::move(why);
  }

  /// Sets c to activation(a m + bias) + residual. Bias and residual may be empty.
  void product(const Read<T>& a, const NamedMatrix<T>& m, const Read<T>& elements, const Read<T>& bias,
               const Read<T>& residual, const Write<T>& c, Activation activation = Activation::none) {
    MatmulGroup<T, T> group{a, elements, c, {rows_, m.outputs, m.inputs}, {.transposed_b = true}, {}};
    group.epilogue.activation = activation;
    if (bias.size() != 0) group.epilogue.bias = bias;
    if (residual.size() != 0) group.epilogue.residual = residual;
    keep(add_product_of_rows(steps_, group));
  }

  Job job() && {
    if (refusal_) return refused(block_name, workload_types::attention, *std::move(refusal_));
    return std::move(steps_).job(block_name, workload_types::attention);
  }

 private:
  std::uint64_t rows_;
  Steps steps_;
  Refusal refusal_;
};

template <class T>
Read<T> no_numbers() {
  return std::span<const T>();
}

template <class T>
struct DecoderArguments {
  ReadWrite<T> x;
  Read<std::uint32_t> offsets;
  KeyValueCache<T> cache;
  const DecoderWeights<T>& weights;
  TransformerShape shape;
  DecoderOptions options;
};

template <class T>
Job decoder_block(const DecoderArguments<T>& arguments) {
  const auto& [x, offsets, cache, w, given, options] = arguments;
  TransformerShape shape = given;
  if (shape.key_value_heads == 0) shape.key_value_heads = shape.heads;
  const auto [width, heads, key_heads, head_size, hidden] = shape;
  const std::uint64_t queries = heads * head_size, keys = key_heads * head_size;
  const NamedMatrix<T> query{"query", w.query, queries, width}, key{"key", w.key, keys, width},
      value{"value", w.value, keys, width}, output{"output", w.output, width, queries},
      gate{"gate", w.gate, hidden, width}, up{"up", w.up, hidden, width}, down{"down", w.down, width, hidden};
  const auto refuse = [](std::string why) {
    return refused(block_name, workload_types::attention, std::move(why));
  };
  if (auto why = refusal_of_weights<T>(
          x.size(), shape, {query, key, value, output, gate, up, down},
          {{"attention_norm", w.attention_norm, width}, {"feed_forward_norm", w.feed_forward_norm, width}}))
    return refuse(*std::move(why));

  const std::uint64_t rows = x.size() / width;
  const Scratch<T> h(rows * width), q(rows * queries), k(rows * keys), v(rows * keys),
      attended(rows * queries), y(rows * width), gates(rows * hidden), ups(rows * hidden),
      gated(rows * hidden);
  SequenceArguments<T> sequences{
      block_name,
      q,
      k,
      v,
      offsets,
      cache,
      attended,
      {heads, key_heads, head_size, 0},
      {.scale = options.scale, .causal = true, .window = options.window, .softcap = options.softcap}};
  const Read<T> before = Memory(x);
  const Write<T> after = Memory(x);
  const std::span<T> no_residual;
  const NormStep norm{.epsilon = options.epsilon, .centered = 0, .phase = 0};
  const NormOperands<T> first_norm{before, no_residual, w.attention_norm, no_numbers<T>(), h},
      second_norm{y, no_residual, w.feed_forward_norm, no_numbers<T>(), h};
  std::uint64_t longest = 0;
  auto why = refusal_of_sequences(sequences, longest);
  if (!why) why = no_row_norm<T>(block_name, first_norm, options.epsilon);
  if (why) return refuse(*std::move(why));

  BlockSteps<T> block(rows);
  Steps& steps = block.steps();
  const bool int8_x = options.int8_x;
  // Quantized weights are products, to which a residual is added.
  const auto project = [&](const Read<T>& a, const NamedMatrix<T>& m, const Read<T>& residual,
                           const Write<T>& c) {
    if constexpr (std::is_same_v<T, float>)
      if (m.quantized()) {
        block.keep(add_quantized_matmul(steps, a, m.matrix.blocks, c, rows, m.matrix.quantization,
                                        {.int8_x = int8_x}, true));
        if (residual.size() != 0) add_axpy(steps, 1.0f, residual, ReadWrite<float>(Memory(c)));
        return;
      }
    block.product(a, m, m.matrix.elements, no_numbers<T>(), residual, c);
  };

  const Scratch<std::uint32_t> places((words_of_place + 1) * rows);
  add_sequence_places(steps, sequences, longest, places, true);
  add_row_norm(steps, first_norm, norm);
  project(h, query, no_numbers<T>(), q);
  project(h, key, no_numbers<T>(), k);
  project(h, value, no_numbers<T>(), v);
  if (options.rope) {
    const auto positions = Read<std::uint32_t>(places).slice(words_of_place * rows, rows);
    block.keep(add_rope<T>(steps, q, positions, head_size, *options.rope, block_name));
    block.keep(add_rope<T>(steps, k, positions, head_size, *options.rope, block_name));
  }
  add_sequence_attention(steps, sequences, longest, places);
  project(attended, output, before, y);
  add_row_norm(steps, second_norm, norm);
  project(h, gate, no_numbers<T>(), gates);
  project(h, up, no_numbers<T>(), ups);
  add_silu_multiply<T>(steps, gates, ups, gated, split_of(rows, hidden));
  project(gated, down, y, after);
  return std::move(block).job();
}

template <class T>
struct EncoderArguments {
  ReadWrite<T> x;
  Read<std::uint32_t> offsets;
  const EncoderWeights<T>& weights;
  TransformerShape shape;
  EncoderOptions options;
};

template <class T>
Job encoder_block(const EncoderArguments<T>& arguments) {
  const auto& [x, offsets, w, given, options] = arguments;
  TransformerShape shape = given;
  if (shape.key_value_heads == 0) shape.key_value_heads = shape.heads;
  const auto [width, heads, key_heads, head_size, hidden] = shape;
  const std::uint64_t queries = heads * head_size, keys = key_heads * head_size;
  const std::vector<NamedMatrix<T>> matrices{
      {"query", w.query, queries, width},   {"key", w.key, keys, width}, {"value", w.value, keys, width},
      {"output", w.output, width, queries}, {"up", w.up, hidden, width}, {"down", w.down, width, hidden}};
  const NamedMatrix<T>&query = matrices[0], &key = matrices[1], &value = matrices[2], &output = matrices[3],
        &up = matrices[4], &down = matrices[5];
  const auto refuse = [](std::string why) {
    return refused(block_name, workload_types::attention, std::move(why));
  };
  if (auto why = refusal_of_weights<T>(x.size(), shape, matrices,
                                       {{"query_bias", w.query_bias, queries},
                                        {"key_bias", w.key_bias, keys},
                                        {"value_bias", w.value_bias, keys},
                                        {"output_bias", w.output_bias, width},
                                        {"attention_norm", w.attention_norm, width},
                                        {"attention_norm_bias", w.attention_norm_bias, width},
                                        {"up_bias", w.up_bias, hidden},
                                        {"down_bias", w.down_bias, width},
                                        {"feed_forward_norm", w.feed_forward_norm, width},
                                        {"feed_forward_norm_bias", w.feed_forward_norm_bias, width}}))
    return refuse(*std::move(why));

  const std::uint64_t rows = x.size() / width;
  const Scratch<T> q(rows * queries), k(rows * keys), v(rows * keys), attended(rows * queries),
      sums(rows * width), y(rows * width), activated(rows * hidden);
  SequenceArguments<T> sequences{block_name,
                                 q,
                                 k,
                                 v,
                                 offsets,
                                 std::nullopt,
                                 attended,
                                 {heads, key_heads, head_size, 0},
                                 {.scale = options.scale, .causal = false}};
  const Read<T> before = Memory(x);
  const Write<T> after = Memory(x);
  const std::span<T> no_residual;
  const NormStep norm{.epsilon = options.epsilon, .centered = 1, .phase = 0};
  const NormOperands<T> first_norm{sums, no_residual, w.attention_norm, w.attention_norm_bias, y},
      second_norm{sums, no_residual, w.feed_forward_norm, w.feed_forward_norm_bias, after};
  std::uint64_t longest = 0;
  auto why = refusal_of_sequences(sequences, longest);
  if (!why) why = no_row_norm<T>(block_name, first_norm, options.epsilon);
  if (why) return refuse(*std::move(why));

  BlockSteps<T> block(rows);
  Steps& steps = block.steps();
  std::uint64_t most_elements = 0;
  for (const NamedMatrix<T>& m : matrices)
    if (m.quantized()) most_elements = std::max(most_elements, m.outputs * m.inputs);
  const Scratch<float> wide(most_elements);
  const auto project = [&](const Read<T>& a, const NamedMatrix<T>& m, const Read<T>& bias,
                           const Read<T>& residual, const Write<T>& c, Activation activation) {
    if constexpr (std::is_same_v<T, float>)
      if (m.quantized()) {
        const std::uint64_t size = m.outputs * m.inputs;
        block.keep(
            add_dequantize(steps, m.matrix.blocks, Write<float>(wide).slice(0, size), m.matrix.quantization));
        block.product(a, m, Read<float>(wide).slice(0, size), bias, residual, c, activation);
        return;
      }
    block.product(a, m, m.matrix.elements, bias, residual, c, activation);
  };

  const Scratch<std::uint32_t> places(words_of_place * rows);
  add_sequence_places(steps, sequences, longest, places, false);
  project(before, query, w.query_bias, no_numbers<T>(), q, Activation::none);
  project(before, key, w.key_bias, no_numbers<T>(), k, Activation::none);
  project(before, value, w.value_bias, no_numbers<T>(), v, Activation::none);
  add_sequence_attention(steps, sequences, longest, places);
  project(attended, output, w.output_bias, before, sums, Activation::none);
  add_row_norm(steps, first_norm, norm);
  project(y, up, w.up_bias, no_numbers<T>(), activated, Activation::gelu);
  project(activated, down, w.down_bias, y, sums, Activation::none);
  add_row_norm(steps, second_norm, norm);
  return std::move(block).job();
}

}  // namespace

Job transformer_block(ReadWrite<float> x, Read<std::uint32_t> offsets, KeyValueCache<float> cache,
                      const DecoderWeights<float>& weights, TransformerShape shape, DecoderOptions options) {
  return decoder_block<float>({x, offsets, cache, weights, shape, options});
}
Job transformer_block(ReadWrite<half> x, Read<std::uint32_t> offsets, KeyValueCache<half> cache,
                      const DecoderWeights<half>& weights, TransformerShape shape, DecoderOptions options) {
  return decoder_block<half>({x, offsets, cache, weights, shape, options});
}
Job transformer_block(ReadWrite<bfloat16> x, Read<std::uint32_t> offsets, KeyValueCache<bfloat16> cache,
                      const DecoderWeights<bfloat16>& weights, TransformerShape shape,
                      DecoderOptions options) {
  return decoder_block<bfloat16>({x, offsets, cache, weights, shape, options});
}

Job transformer_block(ReadWrite<float> x, Read<std::uint32_t> offsets, const EncoderWeights<float>& weights,
                      TransformerShape shape, EncoderOptions options) {
  return encoder_block<float>({x, offsets, weights, shape, options});
}
Job transformer_block(ReadWrite<half> x, Read<std::uint32_t> offsets, const EncoderWeights<half>& weights,
                      TransformerShape shape, EncoderOptions options) {
  return encoder_block<half>({x, offsets, weights, shape, options});
}
Job transformer_block(ReadWrite<bfloat16> x, Read<std::uint32_t> offsets,
                      const EncoderWeights<bfloat16>& weights, TransformerShape shape,
                      EncoderOptions options) {
  return encoder_block<bfloat16>({x, offsets, weights, shape, options});
}

}  // namespace wye::workloads
