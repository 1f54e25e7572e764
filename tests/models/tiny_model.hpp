#pragma once
/// An encoder with random weights, as files in a folder, and its exact results.
#include <wye/models/encoder.hpp>
#include <wye/models/tokenizer.hpp>
#include <wye/workloads/transformer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.hpp"

namespace wye::test {

class TinyModel {
 public:
  using Json = nlohmann::json;
  struct Tensor {
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
  };

  TinyModel() {
    for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
      vocabulary += std::string(special) + "\n";
    for (char letter = 'a'; letter <= 'z'; ++letter)
      vocabulary += std::string(1, letter) + "\n##" + std::string(1, letter) + "\n";
    add("embeddings.word_embeddings.weight", {57, width});
    add("embeddings.position_embeddings.weight", {24, width});
    add("embeddings.token_type_embeddings.weight", {2, width});
    add_norm("embeddings.LayerNorm");
    for (int layer = 0; layer < 2; ++layer) {
      const std::string at = "encoder.layer." + std::to_string(layer) + ".";
      for (const char* name : {"query", "key", "value"})
        add_layer(at + "attention.self." + name, width, width);
      add_layer(at + "attention.output.dense", width, width);
      add_norm(at + "attention.output.LayerNorm");
      add_layer(at + "intermediate.dense", hidden, width);
      add_layer(at + "output.dense", width, hidden);
      add_norm(at + "output.LayerNorm");
    }
  }

  /// Writes the files and returns the folder.
  std::string write() const {
    folder_.put("config.json", config.dump());
    folder_.put("vocab.txt", vocabulary);
    folder_.put("1_Pooling/config.json", pooling.dump());
    if (!limits.is_null()) folder_.put("sentence_bert_config.json", limits.dump());
    if (!modules.is_null()) folder_.put("modules.json", modules.dump());
    Json header = Json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      const std::size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
      header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    const std::uint64_t size = text.size();
    folder_.put("model.safetensors", std::string(reinterpret_cast<const char*>(&size), 8) + text + data);
    return folder_.path().string();
  }
  const TemporaryFolder& folder() const { return folder_; }

  /// Returns the row of a sequence, in float64.
  std::vector<double> exact(std::span<const std::uint32_t> tokens) const {
    std::vector<double> x;
    for (std::size_t t = 0; t < tokens.size(); ++t)
      for (std::uint64_t c = 0; c < width; ++c)
        x.push_back(double{at("embeddings.word_embeddings.weight")[tokens[t] * width + c]} +
                    at("embeddings.position_embeddings.weight")[t * width + c] +
                    at("embeddings.token_type_embeddings.weight")[c]);
    for (std::size_t t = 0; t < tokens.size(); ++t) normalize(std::span(x).subspan(t * width, width));
    const std::vector<std::uint32_t> offsets{0, static_cast<std::uint32_t>(tokens.size())};
    for (int layer = 0; layer < 2; ++layer) {
      const std::string in = "encoder.layer." + std::to_string(layer) + ".";
      const workloads::EncoderWeights<float> weights{
          .query = {at(in + "attention.self.query.weight")},
          .query_bias = at(in + "attention.self.query.bias"),
          .key = {at(in + "attention.self.key.weight")},
          .key_bias = at(in + "attention.self.key.bias"),
          .value = {at(in + "attention.self.value.weight")},
          .value_bias = at(in + "attention.self.value.bias"),
          .output = {at(in + "attention.output.dense.weight")},
          .output_bias = at(in + "attention.output.dense.bias"),
          .attention_norm = at(in + "attention.output.LayerNorm.weight"),
          .attention_norm_bias = at(in + "attention.output.LayerNorm.bias"),
          .up = {at(in + "intermediate.dense.weight")},
          .up_bias = at(in + "intermediate.dense.bias"),
          .down = {at(in + "output.dense.weight")},
          .down_bias = at(in + "output.dense.bias"),
          .feed_forward_norm = at(in + "output.LayerNorm.weight"),
          .feed_forward_norm_bias = at(in + "output.LayerNorm.bias"),
      };
      x = workloads::reference::transformer_block(
          x, offsets, weights, {.width = width, .heads = 4, .head_size = width / 4, .hidden = hidden});
    }
    std::vector<double> row(width);
    const std::size_t rows = pools_first ? 1 : tokens.size();
    for (std::size_t t = 0; t < rows; ++t)
      for (std::uint64_t c = 0; c < width; ++c) row[c] += x[t * width + c];
    return unit(std::move(row));
  }
  static std::vector<double> unit(std::vector<double> row) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    for (double& value : row) value /= std::sqrt(squares);
    return row;
  }

  static constexpr std::uint64_t width = 32, hidden = 64;
  Json config{{"model_type", "bert"},    {"hidden_act", "gelu"},
              {"vocab_size", 57},        {"hidden_size", 32},
              {"num_hidden_layers", 2},  {"num_attention_heads", 4},
              {"intermediate_size", 64}, {"type_vocab_size", 2},
              {"layer_norm_eps", 1e-12}, {"max_position_embeddings", 24}};
  Json pooling{{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", false}};
  Json limits{{"max_seq_length", 20}};
  Json modules;
  bool pools_first = false;  ///< for `exact`
  std::string vocabulary;
  std::map<std::string, Tensor> tensors;

 private:
  void add(const std::string& name, std::vector<std::uint64_t> shape, float low = -0.5f, float high = 0.5f) {
    std::uint64_t count = 1;
    for (const std::uint64_t side : shape) count *= side;
    Tensor& tensor = tensors[name];
    tensor.shape = std::move(shape);
    for (std::uint64_t i = 0; i < count; ++i)
      tensor.values.push_back(low + (high - low) * static_cast<float>(random_() % 65536) / 65535);
  }
  void add_layer(const std::string& name, std::uint64_t outputs, std::uint64_t inputs) {
    add(name + ".weight", {outputs, inputs}, -0.3f, 0.3f);
    add(name + ".bias", {outputs}, -0.1f, 0.1f);
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", {width}, 0.8f, 1.2f);
    add(name + ".bias", {width}, -0.1f, 0.1f);
  }
  std::span<const float> at(const std::string& name) const { return tensors.at(name).values; }
  void normalize(std::span<double> row) const {
    double mean = 0, squares = 0;
    for (const double value : row) mean += value / width;
    for (const double value : row) squares += (value - mean) * (value - mean) / width;
    for (std::size_t c = 0; c < row.size(); ++c)
      row[c] = (row[c] - mean) / std::sqrt(squares + 1e-12) * at("embeddings.LayerNorm.weight")[c] +
               at("embeddings.LayerNorm.bias")[c];
  }

  TemporaryFolder folder_;
  std::mt19937 random_{7};
};

/// Returns the tokens of the beginning of a text, with the special tokens.
inline std::vector<std::uint32_t> sequence_of(const models::Encoder& encoder, const std::string& text) {
  auto tokens = encoder.tokenizer().encode(text);
  tokens.resize(std::min<std::size_t>(tokens.size(), encoder.max_tokens() - 2));
  tokens.insert(tokens.begin(), encoder.tokenizer().begin());
  tokens.push_back(encoder.tokenizer().end());
  return tokens;
}

/// Returns the largest difference of a row and its exact values; they have the same length.
inline double largest_difference(std::span<const float> got, std::span<const double> exact) {
  double largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) largest = std::max(largest, std::abs(got[i] - exact[i]));
  return largest;
}

}  // namespace wye::test
