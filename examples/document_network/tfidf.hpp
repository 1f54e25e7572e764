#pragma once
/// Text to vectors: how often a document uses a word, relative to the number of documents that use
/// it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace document_network {

/// The words of one document: (word, count), ordered by word number.
using Bag = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Assigns a number to each word.
class Vocabulary {
 public:
  /// Counts the words of `utf8`. Appends the numbers of its first words to `beginning` until that
  /// has `longest_beginning`.
  Bag count(std::string_view utf8, std::vector<std::uint32_t>* beginning = nullptr);
  static constexpr std::size_t longest_beginning = 4096;

  const std::vector<std::string>& words() const { return words_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> words_;
};

/// One row per document, one column per distinctive word.
struct Vectors {
  std::vector<float> values;  ///< row by row
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::string> words;  ///< of the columns in use; the others are zero
};

/// Weighs each word by (1 + ln tf) * ln((1 + n) / df) and keeps the `columns` words of highest
/// total weight. Equal input gives equal bits.
/// Source: Salton and Buckley, "Term-weighting approaches in automatic text retrieval", 1988.
Vectors tf_idf(const std::vector<Bag>& bags, const std::vector<std::string>& words, std::size_t columns);

}  // namespace document_network
