#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normalizer.hpp"
#include "trie.hpp"

namespace wye::inline v0::models {

/// A token that is found in texts before they are cut into words.
struct AddedToken {
  std::uint32_t token = 0;
  bool normalized = false;  ///< it is found in the normalized text, in normalized form
};

/// The contents of a tokenizer's files, read and checked.
struct WordPieceParts {
  std::vector<std::string> pieces;   ///< by token
  std::vector<std::uint8_t> listed;  ///< by token: 1 if it is a piece of words, 0 if only added
  std::vector<AddedToken> added;
  std::string prefix = "##";         ///< of the pieces that do not begin a word
  std::uint32_t longest_word = 100;  ///< characters; longer words are unknown
  std::uint32_t unknown = 0, begin = 0, end = 0;
  Normalizer normalizer;
};

/// Cuts texts into tokens, as Hugging Face's tokenizers does.
/// Threads: thread-safe.
class WordPiece {
 public:
  explicit WordPiece(WordPieceParts parts);

  std::vector<std::uint32_t> encode(std::string_view text) const;
  const WordPieceParts& parts() const noexcept { return parts_; }

 private:
  void encode_word(std::string_view word, std::vector<std::uint32_t>& tokens) const;

  WordPieceParts parts_;
  Trie pieces_, added_, normalized_added_;
  std::optional<Trie::Node> behind_prefix_;
};

}  // namespace wye::models
