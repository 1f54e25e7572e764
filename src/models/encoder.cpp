#include <wye/models/encoder.hpp>
#include <wye/models/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "bert.hpp"

namespace wye::inline v0::models {
namespace {

/// A text, or a window of a long one.
struct Sequence {
  std::size_t text = 0;
  std::size_t first = 0;  ///< of its tokens in those of all texts
  std::uint32_t size = 0;
};

/// Texts as sequences of tokens.
struct Texts {
  std::vector<std::uint32_t> tokens;
  std::vector<Sequence> sequences;
  std::vector<std::uint32_t> windows;  ///< of each text
};

Error was_cancelled() { return Error(Errc::cancelled, "The call was cancelled."); }
Error is_late() { return Error(Errc::timed_out, "The deadline passed."); }

Result<void> check(const EncoderOptions& options) {
  if (options.precision == Precision::q4_0 || options.precision == Precision::q4_1)
    return Error(Errc::unsupported, "Precision " + std::string(name(options.precision)) +
                                        " is not supported: with weights of 4 bits, the cosine of an "
                                        "embedding and its float32 form falls to 0.95. Use q8_0.");
  if (name(options.precision).empty())
    return Error(Errc::invalid_argument, "Precision (" +
                                             std::to_string(static_cast<unsigned>(options.precision)) +
                                             ") is none of float32, float16, bfloat16 and q8_0.");
  if (options.batch_texts == 0)
    return Error(Errc::invalid_argument, "Option batch_texts (0) is not at least 1.");
  return {};
}

}  // namespace

std::string_view name(Precision precision) noexcept {
  switch (precision) {
    case Precision::float32: return "float32";
    case Precision::float16: return "float16";
    case Precision::bfloat16: return "bfloat16";
    case Precision::q8_0: return "q8_0";
    case Precision::q4_0: return "q4_0";
    case Precision::q4_1: return "q4_1";
  }
  return {};
}

struct Encoder::Model {
  mutable Runtime runtime;
  EncoderOptions options;
  Tokenizer tokenizer;
  BertConfig config;
  Safetensors file;  // outlives the arrays over its memory
  std::unique_ptr<const Bert> bert;

  Texts tokenize(std::span<const std::string_view> texts, LongText long_text) const;
  std::vector<std::span<const Sequence>> batches(std::vector<Sequence>& sequences) const;
  Result<Embeddings> embed(const Texts& all, std::span<const std::span<const Sequence>> batches,
                           const EmbedOptions& options, Instant until) const;
  Result<Array<float>> run(const Texts& texts, std::span<const Sequence> sequences,
                           const EmbedOptions& options, Instant until, std::optional<Outcome>& last) const;
  Result<Array<float>> try_run(const BertBatch& batch, const EmbedOptions& options, Instant until,
                               std::optional<Outcome>& last) const;
};

Result<Encoder> Encoder::open(Runtime runtime, const std::string& folder, EncoderOptions options) {
  if (auto ok = check(options); !ok) return std::move(ok).error();
  auto config = read_bert_config(folder);
  if (!config) return std::move(config).error();
  auto tokenizer = Tokenizer::open(folder);
  if (!tokenizer) return std::move(tokenizer).error();
  if (tokenizer->vocabulary() > config->vocabulary)
    return Error(Errc::invalid_argument,
                 "The tokenizer in '" + folder + "' has " + std::to_string(tokenizer->vocabulary()) +
                     " pieces; the model has " + std::to_string(config->vocabulary) + " rows for them.");
  auto file = Safetensors::open(folder + "/model.safetensors");
  if (!file) return std::move(file).error();
  auto bert = Bert::load(runtime, *file, *config, options.precision);
  if (!bert) return std::move(bert).error().with_context("while opening the model in '" + folder + "'");
  return Encoder(
      std::shared_ptr<const Model>(new Model{std::move(runtime), std::move(options), *std::move(tokenizer),
                                             *config, *std::move(file), *std::move(bert)}));
}

std::uint32_t Encoder::columns() const noexcept { return model_->config.width; }
std::uint32_t Encoder::max_tokens() const noexcept { return model_->config.max_tokens; }
const Tokenizer& Encoder::tokenizer() const noexcept { return model_->tokenizer; }
Bytes Encoder::weight_bytes() const noexcept { return model_->bert->weight_bytes(); }

/// Splits texts into sequences. Windows of a text have the same number of tokens, or one less.
Texts Encoder::Model::tokenize(std::span<const std::string_view> texts, LongText long_text) const {
  const std::size_t room = config.max_tokens - 2;  // without the special tokens
  Texts all;
  for (std::size_t text = 0; text < texts.size(); ++text) {
    auto tokens = tokenizer.encode(texts[text]);
    if (long_text == LongText::cut && tokens.size() > room) tokens.resize(room);
    const std::size_t windows = std::max<std::size_t>(1, (tokens.size() + room - 1) / room);
    for (std::size_t window = 0; window < windows; ++window) {
      // The longer windows come first, so that sorting keeps their order.
      const std::size_t size = tokens.size() / windows, longer = tokens.size() % windows;
      const std::size_t first = window * size + std::min(window, longer);
      const std::size_t end = first + size + (window < longer ? 1 : 0);
      all.sequences.push_back({text, all.tokens.size(), static_cast<std::uint32_t>(end - first + 2)});
      all.tokens.push_back(tokenizer.begin());
      all.tokens.insert(all.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(first),
                        tokens.begin() + static_cast<std::ptrdiff_t>(end));
      all.tokens.push_back(tokenizer.end());
    }
    all.windows.push_back(static_cast<std::uint32_t>(windows));
  }
  return all;
}

/// Divides sequences into batches. Several batches have sequences of similar lengths: the sequences
/// are sorted then, the longest first.
std::vector<std::span<const Sequence>> Encoder::Model::batches(std::vector<Sequence>& sequences) const {
  const auto divide = [&] {
    std::vector<std::span<const Sequence>> batches;
    std::size_t first = 0;
    std::uint64_t tokens = 0;
    for (std::size_t at = 0; at < sequences.size(); ++at) {
      if (at > first &&
          (at - first == options.batch_texts || tokens + sequences[at].size > options.batch_tokens)) {
        batches.push_back(std::span(sequences).subspan(first, at - first));
        first = at;
        tokens = 0;
      }
      tokens += sequences[at].size;
    }
    if (first < sequences.size()) batches.push_back(std::span(sequences).subspan(first));
    return batches;
  };
  if (auto one = divide(); one.size() <= 1) return one;
  std::stable_sort(sequences.begin(), sequences.end(),
                   [](const Sequence& a, const Sequence& b) { return a.size > b.size; });
  return divide();
}

/// Runs a batch, and again on another device if it is lost. Returns a row for each sequence.
Result<Array<float>> Encoder::Model::run(const Texts& texts, std::span<const Sequence> sequences,
                                         const EmbedOptions& embed_options, Instant until,
                                         std::optional<Outcome>& last) const {
  BertBatch batch;
  for (const Sequence& sequence : sequences) {
    const auto first = texts.tokens.begin() + static_cast<std::ptrdiff_t>(sequence.first);
    batch.tokens.insert(batch.tokens.end(), first, first + sequence.size);
    for (std::uint32_t i = 0; i < sequence.size; ++i) batch.positions.push_back(i);
    batch.offsets.push_back(static_cast<std::uint32_t>(batch.tokens.size()));
  }
  for (std::size_t losses = 0;; ++losses) {
    auto rows = try_run(batch, embed_options, until, last);
    if (rows || rows.error() != Errc::device_lost || losses == runtime.devices().size()) return rows;
  }
}

/// Runs a batch once. All of its jobs have settled when this returns: they use the weights.
Result<Array<float>> Encoder::Model::try_run(const BertBatch& batch, const EmbedOptions& embed_options,
                                             Instant until, std::optional<Outcome>& last) const {
  if (embed_options.stop.stop_requested()) return was_cancelled();
  if (until <= Clock::steady().now()) return is_late();
  const Array<float> rows = runtime.array<float>(std::uint64_t{batch.sequences()} * config.width);
  std::vector<Ticket> tickets;
  for (Job& job : bert->jobs(runtime, batch, rows))
    tickets.push_back(runtime.submit(std::move(job), {.on = options.on, .tag = embed_options.tag}));
  const auto cancel = [&] {
    for (Ticket& ticket : tickets) ticket.cancel();
  };
  bool in_time = true;
  {
    const std::stop_callback stopped(embed_options.stop, cancel);
    for (Ticket& ticket : tickets) {
      auto done = until == Instant::max() ? ticket.wait() : ticket.wait(until);
      if (!done && !ticket.ready()) {
        in_time = false;
        break;
      }
      if (done) last = *std::move(done);
    }
  }
  if (!in_time) cancel();
  std::optional<Error> error;
  for (Ticket& ticket : tickets)
    if (auto done = ticket.wait(); !done && !error) error = std::move(done).error();
  if (error && embed_options.stop.stop_requested()) return was_cancelled();
  if (error && !in_time) return is_late();
  if (error) return *std::move(error);
  return rows;
}

/// Runs batches one after the other. Returns a row for each text.
Result<Embeddings> Encoder::Model::embed(const Texts& all, std::span<const std::span<const Sequence>> batches,
                                         const EmbedOptions& embed_options, Instant until) const {
  const std::size_t texts = all.windows.size(), columns = config.width;
  Embeddings made;
  made.columns_ = columns;
  made.values_.resize(texts * columns);
  made.tokens_ = all.tokens.size();
  EmbedProgress progress{.all_texts = texts, .all_tokens = all.tokens.size()};
  std::vector<std::uint32_t> left = all.windows;
  std::optional<Outcome> last;
  for (const auto& batch : batches) {
    auto rows = run(all, batch, embed_options, until, last);
    if (!rows)
      return std::move(rows).error().with_context("while embedding " + std::to_string(texts) +
                                                  " texts, of which " + std::to_string(progress.texts) +
                                                  " were complete");
    const auto view = rows->read();
    if (!view) return view.error();
    for (std::size_t s = 0; s < batch.size(); ++s) {
      float* const sum = made.values_.data() + batch[s].text * columns;
      for (std::size_t c = 0; c < columns; ++c) sum[c] += (*view)[s * columns + c];
      progress.tokens += batch[s].size;
      if (--left[batch[s].text] == 0) ++progress.texts;
    }
    if (embed_options.progress) embed_options.progress(progress);
  }
  for (std::size_t text = 0; text < texts; ++text) {
    if (all.windows[text] == 1) continue;
    float* const row = made.values_.data() + text * columns;
    double squares = 0;
    for (std::size_t c = 0; c < columns; ++c) squares += double{row[c]} * row[c];
    if (squares > 0)
      for (std::size_t c = 0; c < columns; ++c) row[c] = static_cast<float>(row[c] / std::sqrt(squares));
  }
  if (last) made.device_ = last->device(), made.reason_ = last->reason();
  return made;
}

Result<Embeddings> Encoder::embed(std::span<const std::string_view> texts,
                                  const EmbedOptions& options) const {
  const Instant until = options.deadline.at(Clock::steady());
  Texts all = model_->tokenize(texts, options.long_text);
  const auto batches = model_->batches(all.sequences);
  return model_->embed(all, batches, options, until);
}

Result<Array<float>> Encoder::embed_array(std::span<const std::string_view> texts,
                                          const EmbedOptions& options) const {
  const Instant until = options.deadline.at(Clock::steady());
  Texts all = model_->tokenize(texts, options.long_text);
  const auto batches = model_->batches(all.sequences);
  if (batches.size() == 1 && all.sequences.size() == texts.size()) {
    std::optional<Outcome> last;
    return model_->run(all, batches[0], options, until, last);
  }
  auto rows = model_->embed(all, batches, options, until);
  if (!rows) return std::move(rows).error();
  return model_->runtime.array(rows->values());
}

}  // namespace wye::models
