#include "bert.hpp"

#include <wye/base/half.hpp>
#include <wye/workloads/add_rows.hpp>
#include <wye/workloads/embed.hpp>
#include <wye/workloads/layer_norm.hpp>
#include <wye/workloads/matmul.hpp>
#include <wye/workloads/normalize.hpp>
#include <wye/workloads/quantized.hpp>
#include <wye/workloads/segment_mean.hpp>
#include <wye/workloads/transformer.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "json_reader.hpp"

namespace wye::inline v0::models {
namespace {

constexpr std::uint32_t most_width = 1u << 20;  // of widths, as in `TransformerShape`

/// Reads a file that a model's folder may lack: null then.
Result<Json> read_optional(const std::string& path) {
  auto json = read_json(path);
  if (!json && json.error() == Errc::not_found) return Json();
  return json;
}

/// Returns whether a key is there and true.
bool flag(JsonReader& reader, const char* key) {
  const JsonPlace place = reader.find(reader.root(), key);
  return place.value && reader.boolean(place);
}

/// Returns the folder of the pooling's configuration, and refuses modules that wye has not.
Result<std::string> read_modules(const std::string& folder) {
  const std::string file = folder + "/modules.json";
  auto modules = read_optional(file);
  if (!modules) return std::move(modules).error();
  std::string pooling = "1_Pooling";
  if (modules->is_null()) return pooling;
  const Json root{{"modules", *std::move(modules)}};  // the file has an array at its top
  JsonReader reader(root, file);
  for (const JsonPlace& module : reader.elements(reader.at(reader.root(), "modules"))) {
    std::string type = reader.text(reader.at(module, "type"));
    type.erase(0, type.rfind('.') + 1);  // of the name of a Python class
    if (reader.error()) break;
    if (type != "Transformer" && type != "Pooling" && type != "Normalize")
      reader.fail(Errc::unsupported, reader.named(module.path + ".type") + " is '" + shown(type) +
                                         "'; supported: 'Transformer', 'Pooling', 'Normalize'.");
    if (type == "Pooling") pooling = reader.text(reader.at(module, "path"));
  }
  if (reader.error()) return *reader.error();
  return pooling;
}

/// Reads how rows are pooled: their mean, if no file says so.
Result<Pooling> read_pooling(const std::string& folder) {
  const auto in = read_modules(folder);
  if (!in) return in.error();
  const std::string file = folder + "/" + *in + "/config.json";
  const auto json = read_optional(file);
  if (!json) return json.error();
  if (json->is_null()) return Pooling::mean;
  JsonReader reader(*json, file);
  for (const char* other : {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                            "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"})
    if (flag(reader, other))
      reader.fail(
          Errc::unsupported,
          reader.named(other) + " is true; supported: 'pooling_mode_mean_tokens', 'pooling_mode_cls_token'.");
  const bool mean = flag(reader, "pooling_mode_mean_tokens"), first = flag(reader, "pooling_mode_cls_token");
  if (mean == first)
    reader.fail(Errc::unsupported, "File '" + file + "' has " + (mean ? "both" : "neither") +
                                       " of 'pooling_mode_mean_tokens' and 'pooling_mode_cls_token'.");
  if (reader.error()) return *reader.error();
  return first ? Pooling::first : Pooling::mean;
}

/// Calls `f` with each element of a tensor as float.
template <class Stored, class F>
void each_of(const Tensor& tensor, F f) {
  for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(Stored)) {
    Stored value;  // the memory may not be aligned
    std::memcpy(&value, tensor.bytes.data() + at, sizeof(Stored));
    f(static_cast<float>(value));
  }
}

/// Finds tensors of a file and makes arrays of them. The first error stays.
class Loader {
 public:
  Loader(Runtime& runtime, const Safetensors& file) : runtime_(runtime), file_(file) {
    // Models saved with a head name their encoder.
    if (!file_.tensor("embeddings.word_embeddings.weight") &&
        file_.tensor("bert.embeddings.word_embeddings.weight"))
      prefix_ = "bert.";
  }

  /// Returns the elements of a tensor: borrowed, if they are of type `T` and aligned.
  template <class T>
  Array<T> elements(const std::string& name, std::initializer_list<std::uint64_t> shape) {
    const auto tensor = find(name, shape);
    if (!tensor) return {};
    bytes_.count += tensor->bytes.size() / file_size(tensor->type) * sizeof(T);
    if (tensor->type == element_type<T>() &&
        reinterpret_cast<std::uintptr_t>(tensor->bytes.data()) % alignof(T) == 0)
      return runtime_.borrow(
          std::span<T>(reinterpret_cast<T*>(tensor->bytes.data()), tensor->bytes.size() / sizeof(T)));
    return runtime_.array(converted<T>(*tensor));
  }
  /// Returns a matrix of the precision.
  template <class T>
  workloads::WeightMatrix<T> matrix(const std::string& name, std::uint64_t outputs, std::uint64_t inputs,
                                    Precision precision) {
    if constexpr (std::is_same_v<T, float>)
      if (precision == Precision::q8_0) return quantized(name, outputs, inputs);
    return {.elements = elements<T>(name, {outputs, inputs})};
  }
  /// Returns the rows of positions, each with the row of the first type added.
  template <class T>
  Array<T> positions(std::uint64_t positions, std::uint64_t types, std::uint64_t width) {
    const auto rows = find("embeddings.position_embeddings.weight", {positions, width});
    const auto type = find("embeddings.token_type_embeddings.weight", {types, width});
    if (!rows || !type) return {};
    const auto row = converted<float>(*type);
    std::vector<T> sums;
    sums.reserve(positions * width);
    for (const float value : converted<float>(*rows))
      sums.push_back(static_cast<T>(value + row[sums.size() % width]));
    bytes_.count += sums.size() * sizeof(T);
    return runtime_.array(sums);
  }

  const std::optional<Error>& error() const { return error_; }
  Bytes bytes() const { return bytes_; }

 private:
  static std::uint64_t file_size(ElementType type) { return type == ElementType::float32 ? 4 : 2; }

  std::optional<Tensor> find(const std::string& name, std::initializer_list<std::uint64_t> shape) {
    if (error_) return std::nullopt;
    auto tensor = file_.tensor(prefix_ + name);
    if (!tensor) return fail(std::move(tensor).error()), std::nullopt;
    const std::span<const std::uint64_t> expected(shape.begin(), shape.size());
    if (!std::equal(tensor->shape.begin(), tensor->shape.end(), expected.begin(), expected.end()))
      return fail(Error(Errc::invalid_argument, "Tensor '" + prefix_ + name + "' has the shape " +
                                                    shown(tensor->shape) + "; the configuration requires " +
                                                    shown(expected) + ".")),
             std::nullopt;
    if (tensor->type != ElementType::float32 && tensor->type != ElementType::float16 &&
        tensor->type != ElementType::bfloat16)
      return fail(Error(Errc::unsupported, "Tensor '" + prefix_ + name + "' has elements of type " +
                                               std::string(wye::name(tensor->type)) +
                                               "; weights of encoders are float32, float16 or bfloat16.")),
             std::nullopt;
    return *tensor;
  }
  template <class T>
  static std::vector<T> converted(const Tensor& tensor) {
    std::vector<T> made;
    made.reserve(tensor.bytes.size() / file_size(tensor.type));
    const auto add = [&](float value) { made.push_back(static_cast<T>(value)); };
    if (tensor.type == ElementType::float32) each_of<float>(tensor, add);
    if (tensor.type == ElementType::float16) each_of<half>(tensor, add);
    if (tensor.type == ElementType::bfloat16) each_of<bfloat16>(tensor, add);
    return made;
  }
  workloads::WeightMatrix<float> quantized(const std::string& name, std::uint64_t outputs,
                                           std::uint64_t inputs) {
    constexpr workloads::Quantization q8_0{workloads::BlockType::q8_0, 32};
    const auto tensor = find(name, {outputs, inputs});
    if (!tensor) return {};
    if (inputs % q8_0.group != 0) {
      fail(Error(Errc::invalid_argument, "Rows of tensor '" + prefix_ + name + "' (" +
                                             std::to_string(inputs) +
                                             " numbers) are no whole number of blocks q8_0 (32 numbers)."));
      return {};
    }
    const Array<std::uint8_t> blocks =
        runtime_.array<std::uint8_t>(outputs * inputs / q8_0.group * workloads::block_bytes(q8_0));
    const auto numbers = converted<float>(*tensor);
    if (auto made = runtime_.run(workloads::quantize(numbers, blocks, q8_0)); !made)
      return fail(std::move(made).error()), workloads::WeightMatrix<float>{};
    // A copy on the host: the weights are there if the device is lost.
    if (const auto copy = blocks.read(); !copy) return fail(copy.error()), workloads::WeightMatrix<float>{};
    bytes_.count += blocks.size();
    return {.blocks = blocks, .quantization = q8_0};
  }
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  Runtime& runtime_;
  const Safetensors& file_;
  std::string prefix_;
  Bytes bytes_;
  std::optional<Error> error_;
};

template <class T>
class BertOf final : public Bert {
 public:
  BertOf(Runtime& runtime, Loader& loader, const BertConfig& config, Precision precision)
      : config_(config),
        shape_{.width = config.width,
               .heads = config.heads,
               .head_size = config.width / config.heads,
               .hidden = config.hidden} {
    const std::uint64_t width = config.width, hidden = config.hidden;
    words_ = loader.elements<T>("embeddings.word_embeddings.weight", {config.vocabulary, width});
    positions_ = loader.positions<T>(config.positions, config.types, width);
    norm_ = loader.elements<T>("embeddings.LayerNorm.weight", {width});
    norm_bias_ = loader.elements<T>("embeddings.LayerNorm.bias", {width});
    for (std::uint32_t layer = 0; layer < config.layers && !loader.error(); ++layer) {
      const std::string at = "encoder.layer." + std::to_string(layer) + ".";
      const auto matrix = [&](const char* name, std::uint64_t outputs, std::uint64_t inputs) {
        return loader.matrix<T>(at + name + ".weight", outputs, inputs, precision);
      };
      const auto vector = [&](const char* name, std::uint64_t size) {
        return loader.elements<T>(at + name, {size});
      };
      layers_.push_back({
          .query = matrix("attention.self.query", width, width),
          .query_bias = vector("attention.self.query.bias", width),
          .key = matrix("attention.self.key", width, width),
          .key_bias = vector("attention.self.key.bias", width),
          .value = matrix("attention.self.value", width, width),
          .value_bias = vector("attention.self.value.bias", width),
          .output = matrix("attention.output.dense", width, width),
          .output_bias = vector("attention.output.dense.bias", width),
          .attention_norm = vector("attention.output.LayerNorm.weight", width),
          .attention_norm_bias = vector("attention.output.LayerNorm.bias", width),
          .up = matrix("intermediate.dense", hidden, width),
          .up_bias = vector("intermediate.dense.bias", hidden),
          .down = matrix("output.dense", width, hidden),
          .down_bias = vector("output.dense.bias", width),
          .feed_forward_norm = vector("output.LayerNorm.weight", width),
          .feed_forward_norm_bias = vector("output.LayerNorm.bias", width),
      });
    }
    one_ = runtime.array(std::vector<T>{T(1.0f)});
    bytes_ = loader.bytes();
  }

  std::vector<Job> jobs(Runtime& runtime, const BertBatch& batch, const Array<float>& rows) const override {
    const Array<T> x = runtime.array<T>(batch.tokens.size() * config_.width);
    std::vector<Job> jobs;
    jobs.push_back(workloads::embed(words_, batch.tokens, x));
    jobs.push_back(workloads::add_rows(x, positions_, batch.positions));
    const Array<T> normed = runtime.array<T>(x.size());
    jobs.push_back(workloads::layer_norm(x, norm_, norm_bias_, normed, {.epsilon = config_.epsilon}));
    for (const auto& layer : layers_)
      jobs.push_back(
          workloads::transformer_block(normed, batch.offsets, layer, shape_, {.epsilon = config_.epsilon}));
    Array<T> pooled;
    if constexpr (std::is_same_v<T, float>)
      pooled = rows;
    else
      pooled = runtime.array<T>(rows.size());
    if (config_.pooling == Pooling::mean)
      jobs.push_back(workloads::segment_mean(normed, batch.offsets, pooled));
    else  // the rows in which sequences begin
      jobs.push_back(workloads::embed(normed, std::span(batch.offsets).first(batch.sequences()), pooled));
    if constexpr (!std::is_same_v<T, float>)  // times 1, in float32
      jobs.push_back(workloads::matmul(pooled, one_, rows, {.rows = rows.size(), .columns = 1, .inner = 1}));
    jobs.push_back(workloads::normalize(rows, config_.width));
    return jobs;
  }
  Bytes weight_bytes() const noexcept override { return bytes_; }

 private:
  const BertConfig config_;
  const workloads::TransformerShape shape_;
  Array<T> words_, positions_, norm_, norm_bias_, one_;
  std::vector<workloads::EncoderWeights<T>> layers_;
  Bytes bytes_;
};

}  // namespace

Result<BertConfig> read_bert_config(const std::string& folder) {
  const std::string file = folder + "/config.json";
  const auto json = read_json(file);
  if (!json) return json.error();
  JsonReader reader(*json, file);
  reader.choice(reader.at(reader.root(), "model_type"), {"bert"});
  reader.choice(reader.at(reader.root(), "hidden_act"), {"gelu"});
  if (const JsonPlace type = reader.find(reader.root(), "position_embedding_type"); type.value)
    reader.choice(type, {"absolute"});
  const auto number = [&](const char* key, std::uint32_t least, std::uint32_t limit) {
    return reader.number(reader.at(reader.root(), key), least, limit);
  };
  BertConfig config;
  config.vocabulary = number("vocab_size", 1, JsonReader::number_limit - 1);
  config.positions = number("max_position_embeddings", 3, most_width);
  config.types = number("type_vocab_size", 1, most_width);
  config.width = number("hidden_size", 1, most_width);
  config.heads = number("num_attention_heads", 1, most_width);
  config.layers = number("num_hidden_layers", 1, 1024);
  config.hidden = number("intermediate_size", 1, most_width);
  if (const JsonPlace epsilon = reader.find(reader.root(), "layer_norm_eps"); epsilon.value) {
    const double value = epsilon.value->is_number() ? epsilon.value->get<double>() : 0;
    if (!(value >= 0x1p-126 && value <= 1))
      reader.fail(Errc::corrupt, reader.named(epsilon.path) + " is " + shown(epsilon.value->dump()) +
                                     "; it must be from 2^-126 to 1.");
    config.epsilon = static_cast<float>(value);
  }
  if (!reader.error() && config.width % config.heads != 0)
    reader.fail(Errc::corrupt, reader.named("hidden_size") + " is " + std::to_string(config.width) +
                                   "; it must be a multiple of 'num_attention_heads' (" +
                                   std::to_string(config.heads) + ").");
  if (reader.error()) return *reader.error();

  config.max_tokens = config.positions;
  const std::string limits_file = folder + "/sentence_bert_config.json";
  const auto limits = read_optional(limits_file);
  if (!limits) return limits.error();
  if (!limits->is_null()) {
    JsonReader limit(*limits, limits_file);
    if (const JsonPlace place = limit.find(limit.root(), "max_seq_length"); place.value)
      config.max_tokens = limit.number(place, 3, config.positions);
    if (limit.error()) return *limit.error();
  }
  const auto pooling = read_pooling(folder);
  if (!pooling) return pooling.error();
  config.pooling = *pooling;
  return config;
}

Result<std::unique_ptr<Bert>> Bert::load(Runtime& runtime, const Safetensors& file, const BertConfig& config,
                                         Precision precision) {
  Loader loader(runtime, file);
  std::unique_ptr<Bert> made;
  switch (precision) {
    case Precision::float16: made = std::make_unique<BertOf<half>>(runtime, loader, config, precision); break;
    case Precision::bfloat16:
      made = std::make_unique<BertOf<bfloat16>>(runtime, loader, config, precision);
      break;
    default: made = std::make_unique<BertOf<float>>(runtime, loader, config, precision); break;
  }
  if (loader.error()) return *loader.error();
  return made;
}

}  // namespace wye::models
