#include "corpus.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace document_network {
namespace {

/// The words of a document by number, in order.
using Words = std::vector<std::uint32_t>;

constexpr std::size_t shortest_passage = 40, passage_lengths = 120;

/// Returns a number that looks random: the `index`th of a document.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
std::uint64_t random_number(std::uint64_t document, std::uint64_t index) {
  std::uint64_t x = (document * 8 + index + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Counts `words`.
Bag bag_of(Words words) {
  std::sort(words.begin(), words.end());
  Bag bag;
  for (const std::uint32_t word : words) {
    if (bag.empty() || bag.back().first != word) bag.emplace_back(word, 0u);
    ++bag.back().second;
  }
  return bag;
}

void add_synthetic(Corpus& corpus, const std::vector<Words>& read, std::size_t wanted,
                   wye::ProgressBars& progress) {
  while (!read.empty() && corpus.documents.size() < wanted) {
    progress.draw({.name = "synthesizing", .done = corpus.documents.size(), .total = wanted});
    const std::uint64_t number = corpus.synthetic++;
    Words words;
    for (const std::uint64_t passage : {0u, 3u}) {
      const Words& source = read[random_number(number, passage) % read.size()];
      const std::size_t length = std::min<std::size_t>(
          source.size(), shortest_passage + random_number(number, passage + 1) % passage_lengths);
      const auto first = source.begin() + static_cast<std::ptrdiff_t>(random_number(number, passage + 2) %
                                                                      (source.size() - length + 1));
      words.insert(words.end(), first, first + static_cast<std::ptrdiff_t>(length));
    }
    const Document& first = corpus.documents[random_number(number, 0) % read.size()];
    const std::string name = std::to_string(number);
    corpus.documents.push_back(
        {"synthetic/" + name, first.label + " (synthetic " + name + ")", first.modified, false});
    if (!corpus.texts.empty()) {
      std::string text;
      for (const std::uint32_t word : words) text += corpus.vocabulary.words()[word] + " ";
      corpus.texts.push_back(std::move(text));
    }
    corpus.bags.push_back(bag_of(std::move(words)));
  }
}

}  // namespace

Corpus gather(Listing listing, std::size_t wanted, wye::ProgressBars& progress, bool keeps_texts) {
  Corpus corpus;
  corpus.skipped = std::move(listing.skipped);
  std::vector<Words> beginnings;
  std::size_t done = 0;
  for (Document& document : listing.documents) {
    progress.draw({.name = "reading", .done = done++, .total = listing.documents.size()});
    auto read = read_document(document.path);
    if (const auto* unusable = std::get_if<Unusable>(&read)) {
      ++corpus.skipped[unusable->reason];
      continue;
    }
    Text& text = std::get<Text>(read);
    Words beginning;
    Bag bag = corpus.vocabulary.count(text.utf8, &beginning);
    if (bag.empty()) {
      ++corpus.skipped["no words"];
      continue;
    }
    corpus.repaired += text.repaired;
    corpus.documents.push_back(std::move(document));
    corpus.bags.push_back(std::move(bag));
    if (keeps_texts) {
      // A character that is cut counts as U+FFFD.
      text.utf8.resize(std::min(text.utf8.size(), longest_text));
      corpus.texts.push_back(std::move(text.utf8));
    }
    if (listing.documents.size() < wanted) beginnings.push_back(std::move(beginning));
  }
  add_synthetic(corpus, beginnings, wanted, progress);
  return corpus;
}

}  // namespace document_network
