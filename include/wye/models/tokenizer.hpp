#pragma once
/// Tokenizers: text to the numbers that a model reads.
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0::models {

/// WordPiece with the normalization of BERT: lower case, accents removed, Chinese characters alone,
/// if the tokenizer's file says so. Copies share one vocabulary.
/// Threads: thread-safe.
/// Source:  Wu et al., Google's neural machine translation system, arXiv:1609.08144, section 4.1;
///          Devlin et al., BERT, arXiv:1810.04805. Tokens equal those of Hugging Face's tokenizers
///          0.23.3, also for characters that newer versions of Unicode class in another way.
class WYE_API Tokenizer {
 public:
  /// Opens `tokenizer.json`, otherwise `vocab.txt` (with `tokenizer_config.json`, if it is there), in
  /// a folder. The truncation and padding of the file have no effect.
  /// Errors: not_found, io, corrupt (with the key and its value), unsupported (another model,
  ///         normalizer, pre-tokenizer or post-processor, with those that are supported).
  static Result<Tokenizer> open(const std::string& folder);

  /// Returns the tokens of a text, without `begin` and `end` around them. A special token that is
  /// written in the text, such as "[SEP]", is that token. Bytes that are no UTF-8 count as U+FFFD.
  /// Cost:   proportional to the length of the text.
  std::vector<std::uint32_t> encode(std::string_view text) const;

  std::uint32_t vocabulary() const noexcept;  ///< the number of pieces: each token is below it
  std::uint32_t begin() const noexcept;       ///< the special token before a sequence: [CLS]
  std::uint32_t end() const noexcept;         ///< the special token after a sequence: [SEP]
  std::uint32_t unknown() const noexcept;     ///< the token of a word without pieces: [UNK]
  /// Returns the text of a token; empty if there is no such token.
  std::string_view piece(std::uint32_t token) const noexcept;

 private:
  struct WYE_LOCAL State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace wye::models
