#pragma once
/// Encoders of texts: models in files that turn a text into a vector of its meaning.
#include <wye/data/array.hpp>
#include <wye/models/tokenizer.hpp>
#include <wye/runtime/runtime.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0::models {

/// The type that weights and intermediate results have on a device. docs/models.md has the memory
/// and the quality of each.
enum class Precision : std::uint8_t {
  float32,
  float16,
  bfloat16,
  q8_0,  ///< weights in blocks of 32 numbers of 8 bits, made when the model is opened; results float32
  q4_0,  ///< refused: embeddings lose too much
  q4_1,  ///< refused: embeddings lose too much
};
/// Returns "float32" and the like.
WYE_API std::string_view name(Precision precision) noexcept;

/// Options of an encoder.
struct EncoderOptions {
  Precision precision = Precision::float32;
  std::string on = {};                ///< restricts to an adapter ("vulkan:0") or a backend ("vulkan")
  std::uint32_t batch_texts = 128;    ///< the most sequences of a batch, at least 1
  std::uint32_t batch_tokens = 8192;  ///< the most tokens of a batch; a longer sequence is a batch by itself
};

/// Selects the vector of a text with more tokens than the model takes.
enum class LongText : std::uint8_t {
  cut,      ///< that of its beginning
  average,  ///< the mean of the vectors of its windows, which have equal lengths, of length 1
};

namespace detail {
template <class R>
concept StringRange = std::ranges::input_range<const R> &&
    std::convertible_to<std::ranges::range_reference_t<const R>, std::string_view>;
}  // namespace detail

/// How much of a call of `Encoder::embed` is complete.
struct EmbedProgress {
  std::uint64_t texts = 0;  ///< of which every window is complete
  std::uint64_t all_texts = 0;
  std::uint64_t tokens = 0;
  std::uint64_t all_tokens = 0;
};

/// Options of one call.
struct EmbedOptions {
  LongText long_text = LongText::cut;
  Deadline deadline = {};     ///< of the whole call; a span counts by the steady clock
  std::stop_token stop = {};  ///< cancels the call before its next block
  std::string_view tag = {};  ///< of its jobs
  /// Called on the calling thread after each batch. It may call any function of this library.
  std::function<void(const EmbedProgress&)> progress = {};
};

/// Vectors of texts in host memory: a row of length 1 for each text, in the order of the texts.
/// Threads: thread-compatible.
class Embeddings {
 public:
  Embeddings() = default;
  std::size_t rows() const noexcept { return columns_ == 0 ? 0 : values_.size() / columns_; }
  std::size_t columns() const noexcept { return columns_; }
  std::span<const float> operator[](std::size_t row) const noexcept {
    return std::span<const float>(values_).subspan(row * columns_, columns_);
  }
  /// Returns all rows, row after row.
  std::span<const float> values() const noexcept { return values_; }
  /// Returns the adapter that ran the last batch.
  const AdapterInfo& device() const noexcept { return device_; }
  /// Returns why the scheduler chose it.
  const std::string& reason() const noexcept { return reason_; }
  /// Returns the tokens that the model has read, special tokens included.
  std::uint64_t tokens() const noexcept { return tokens_; }

 private:
  friend class Encoder;
  std::vector<float> values_;
  std::size_t columns_ = 0;
  std::uint64_t tokens_ = 0;
  AdapterInfo device_;
  std::string reason_;
};

/// A BERT encoder with its tokenizer. Copies share one model. It keeps its runtime open.
/// Threads: thread-safe.
class WYE_API Encoder {
 public:
  /// Opens a model in a folder: `config.json`, `model.safetensors`, `tokenizer.json` or `vocab.txt`,
  /// and, if they are there, `sentence_bert_config.json`, `modules.json` and the folder of its
  /// pooling. Weights of float32 are used in the mapped file; other devices copy them once.
  /// Errors: not_found (a file), corrupt (a file that contradicts itself), unsupported (an
  ///         architecture, activation, element type, pooling or tokenizer, with the supported kinds;
  ///         `q4_0` and `q4_1`), invalid_argument (a tensor of another shape than the
  ///         configuration's, with both; an option).
  static Result<Encoder> open(Runtime runtime, const std::string& folder, EncoderOptions options = {});

  /// Returns the vector of each text. A text without words has the vector of its special tokens.
  /// Texts are sorted by length into batches without padding: on one device, a text has the same
  /// bits alone and beside others, if `SchedulerOptions::measure_variants` is off. If a device
  /// is lost, its batch runs on the next one. A call that is cancelled or runs out of time returns
  /// once the block that runs on the CPU has ended.
  /// Shape:   `texts` is any range of strings.
  /// Errors:  timed_out, cancelled; those of the jobs.
  template <detail::StringRange R>
  Result<Embeddings> embed(const R& texts, const EmbedOptions& options = {}) const {
    return embed(std::span<const std::string_view>(views(texts)), options);
  }
  Result<Embeddings> embed(std::span<const std::string_view> texts, const EmbedOptions& options = {}) const;
  /// Does the same, and returns an array with a row of `columns()` numbers for each text. It stays on
  /// the device if the texts are one batch without windows.
  template <detail::StringRange R>
  Result<Array<float>> embed_array(const R& texts, const EmbedOptions& options = {}) const {
    return embed_array(std::span<const std::string_view>(views(texts)), options);
  }
  Result<Array<float>> embed_array(std::span<const std::string_view> texts,
                                   const EmbedOptions& options = {}) const;

  /// Returns the length of a vector.
  std::uint32_t columns() const noexcept;
  /// Returns the most tokens of a sequence, special tokens included.
  std::uint32_t max_tokens() const noexcept;
  const Tokenizer& tokenizer() const noexcept;
  /// Returns the memory of the weights on one device. The mapped file is not counted, and the host's
  /// copy of the weights of `q8_0` is not.
  Bytes weight_bytes() const noexcept;

 private:
  struct WYE_LOCAL Model;
  template <class R>
  static std::vector<std::string_view> views(const R& texts) {
    std::vector<std::string_view> all;
    for (const auto& text : texts) all.emplace_back(text);
    return all;
  }
  explicit Encoder(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

}  // namespace wye::models
