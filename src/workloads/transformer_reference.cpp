#include <wye/workloads/transformer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "rope_angles.hpp"

namespace wye::inline v0::workloads {
namespace {

using Doubles = std::vector<double>;

template <class T>
Doubles doubles_of(const Read<T>& given) {
  const auto* const from = static_cast<const T*>(given.operand().data);
  Doubles made(given.size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<double>(static_cast<float>(from[i]));
  return made;
}

/// Returns the elements of a matrix; those of blocks as `dequantize` makes them.
template <class T>
Doubles elements_of(const WeightMatrix<T>& matrix) {
  if (matrix.blocks.size() == 0) return doubles_of(matrix.elements);
  const auto* const from = static_cast<const std::uint8_t*>(matrix.blocks.operand().data);
  const std::vector<float> elements =
      reference::dequantize(std::span<const std::uint8_t>(from, matrix.blocks.size()), matrix.quantization);
  return {elements.begin(), elements.end()};
}

/// Returns the products of the rows of x with the rows of a matrix, plus a bias, which may be
/// empty.
template <class T>
Doubles times_matrix(const Doubles& x, std::size_t inputs, const WeightMatrix<T>& matrix,
                     const Doubles& bias = {}) {
  const Doubles weights = elements_of(matrix);
  const std::size_t rows = x.size() / inputs, outputs = weights.size() / inputs;
  Doubles y(rows * outputs);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = bias.empty() ? 0.0 : bias[o];
      for (std::size_t i = 0; i < inputs; ++i) sum += x[r * inputs + i] * weights[o * inputs + i];
      y[r * outputs + o] = sum;
    }
  return y;
}

Doubles sum_of(const Doubles& a, const Doubles& b) {
  Doubles sums = a;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += b[i];
  return sums;
}

/// Returns the rows of x as `rms_norm` makes them; with a bias, as `layer_norm` does.
Doubles normed_rows(const Doubles& x, const Doubles& weight, const Doubles& bias, float epsilon) {
  const std::size_t width = weight.size();
  const auto count = static_cast<double>(width);
  Doubles result = x;
  for (std::size_t first = 0; first < x.size(); first += width) {
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < width && !bias.empty(); ++i) mean += x[first + i] / count;
    for (std::size_t i = 0; i < width; ++i) squares += (x[first + i] - mean) * (x[first + i] - mean) / count;
    const double by = 1 / std::sqrt(squares + double{epsilon});
    for (std::size_t i = 0; i < width; ++i)
      result[first + i] = (x[first + i] - mean) * by * weight[i] + (bias.empty() ? 0.0 : bias[i]);
  }
  return result;
}

/// Rotates the heads of the rows of all sequences, as `rope` does.
void rotate_heads(Doubles& x, std::span<const std::uint32_t> offsets, std::size_t heads, std::size_t size,
                  const RopeOptions& options) {
  const std::size_t rotated = options.rotated == 0 ? size : options.rotated, pairs = rotated / 2;
  const double magnitude = rope_magnitude(options);
  const bool neighbours = options.layout == RopeLayout::neighbours;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    for (std::size_t row = offsets[s]; row < offsets[s + 1]; ++row)
      for (std::size_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(row - offsets[s]) * rope_frequency(options, rotated, i),
                     cosine = magnitude * std::cos(angle), sine = magnitude * std::sin(angle);
        for (std::size_t head = 0; head < heads; ++head) {
          double* const elements = x.data() + (row * heads + head) * size;
          double& a = elements[neighbours ? 2 * i : i];
          double& b = elements[neighbours ? 2 * i + 1 : i + pairs];
          const double before = a;
          a = before * cosine - b * sine;
          b = before * sine + b * cosine;
        }
      }
}

/// Returns the attention of all sequences, as `ragged_attention` does.
Doubles attention_in_sequences(const Doubles& q, const Doubles& k, const Doubles& v,
                               std::span<const std::uint32_t> offsets, const TransformerShape& shape,
                               const SequenceOptions& options) {
  const std::size_t heads = shape.heads, key_heads = shape.key_value_heads, size = shape.head_size;
  const double scale =
      options.scale ? static_cast<double>(*options.scale) : 1 / std::sqrt(static_cast<double>(size));
  const double softcap = options.softcap;
  Doubles out(q.size());
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    for (std::size_t row = offsets[s]; row < offsets[s + 1]; ++row)
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t end = options.causal ? row + 1 : offsets[s + 1], all = end - offsets[s],
                          begin =
                              options.window != 0 && all > options.window ? end - options.window : offsets[s];
        const std::size_t key_head = head / (heads / key_heads), at = (row * heads + head) * size;
        Doubles weights(end - begin);
        for (std::size_t key = begin; key < end; ++key)
          for (std::size_t c = 0; c < size; ++c)
            weights[key - begin] += scale * q[at + c] * k[(key * key_heads + key_head) * size + c];
        for (double& weight : weights)
          if (softcap != 0) weight = softcap * std::tanh(weight / softcap);
        const double largest = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        for (std::size_t key = begin; key < end; ++key)
          for (std::size_t c = 0; c < size; ++c)
            out[at + c] += weights[key - begin] / sum * v[(key * key_heads + key_head) * size + c];
      }
  return out;
}

TransformerShape with_all_heads(TransformerShape shape) {
  if (shape.key_value_heads == 0) shape.key_value_heads = shape.heads;
  return shape;
}

template <class T>
Doubles block_of_decoder(std::span<const double> from, std::span<const std::uint32_t> offsets,
                         const DecoderWeights<T>& w, const TransformerShape& shape,
                         const DecoderOptions& options) {
  const std::size_t width = shape.width, queries = shape.heads * shape.head_size;
  Doubles x(from.begin(), from.end());
  Doubles h = normed_rows(x, doubles_of(w.attention_norm), {}, options.epsilon);
  Doubles q = times_matrix(h, width, w.query), k = times_matrix(h, width, w.key);
  const Doubles v = times_matrix(h, width, w.value);
  if (options.rope) {
    rotate_heads(q, offsets, shape.heads, shape.head_size, *options.rope);
    rotate_heads(k, offsets, shape.key_value_heads, shape.head_size, *options.rope);
  }
  const SequenceOptions sequences{
      .scale = options.scale, .causal = true, .window = options.window, .softcap = options.softcap};
  x = sum_of(x, times_matrix(attention_in_sequences(q, k, v, offsets, shape, sequences), queries, w.output));
  h = normed_rows(x, doubles_of(w.feed_forward_norm), {}, options.epsilon);
  Doubles gated = times_matrix(h, width, w.gate);
  const Doubles up = times_matrix(h, width, w.up);
  for (std::size_t i = 0; i < gated.size(); ++i) gated[i] *= up[i] / (1 + std::exp(-gated[i]));
  return sum_of(x, times_matrix(gated, shape.hidden, w.down));
}

template <class T>
Doubles block_of_encoder(std::span<const double> from, std::span<const std::uint32_t> offsets,
                         const EncoderWeights<T>& w, const TransformerShape& shape,
                         const EncoderOptions& options) {
  const std::size_t width = shape.width, queries = shape.heads * shape.head_size;
  Doubles x(from.begin(), from.end());
  const Doubles q = times_matrix(x, width, w.query, doubles_of(w.query_bias)),
                k = times_matrix(x, width, w.key, doubles_of(w.key_bias)),
                v = times_matrix(x, width, w.value, doubles_of(w.value_bias));
  const Doubles attended =
      attention_in_sequences(q, k, v, offsets, shape, {.scale = options.scale, .causal = false});
  x = normed_rows(sum_of(x, times_matrix(attended, queries, w.output, doubles_of(w.output_bias))),
                  doubles_of(w.attention_norm), doubles_of(w.attention_norm_bias), options.epsilon);
  Doubles up = times_matrix(x, width, w.up, doubles_of(w.up_bias));
  for (double& u : up) u *= 0.5 * std::erfc(-u / std::sqrt(2.0));
  return normed_rows(sum_of(x, times_matrix(up, shape.hidden, w.down, doubles_of(w.down_bias))),
                     doubles_of(w.feed_forward_norm), doubles_of(w.feed_forward_norm_bias), options.epsilon);
}

}  // namespace

namespace reference {

#define WYE_TRANSFORMER(T)                                                                                 \
  std::vector<double> transformer_block(std::span<const double> x, std::span<const std::uint32_t> offsets, \
                                        const DecoderWeights<T>& weights, TransformerShape shape,          \
                                        DecoderOptions options) {                                          \
    return block_of_decoder(x, offsets, weights, with_all_heads(shape), options);                          \
  }                                                                                                        \
  std::vector<double> transformer_block(std::span<const double> x, std::span<const std::uint32_t> offsets, \
                                        const EncoderWeights<T>& weights, TransformerShape shape,          \
                                        EncoderOptions options) {                                          \
    return block_of_encoder(x, offsets, weights, with_all_heads(shape), options);                          \
  }
WYE_TRANSFORMER(float)
WYE_TRANSFORMER(half)
WYE_TRANSFORMER(bfloat16)
#undef WYE_TRANSFORMER

}  // namespace reference

}  // namespace wye::workloads
