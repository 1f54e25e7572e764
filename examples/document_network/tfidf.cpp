#include "tfidf.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text.hpp"

namespace document_network {

Bag Vocabulary::count(std::string_view utf8, std::vector<std::uint32_t>* beginning) {
  std::unordered_map<std::uint32_t, std::uint32_t> times;
  for_each_word(utf8, [&](std::string_view word) {
    const auto [entry, is_new] = numbers_.try_emplace(std::string(word), words_.size());
    if (is_new) words_.emplace_back(word);
    ++times[entry->second];
    if (beginning && beginning->size() < longest_beginning) beginning->push_back(entry->second);
  });
  Bag bag(times.begin(), times.end());
  std::sort(bag.begin(), bag.end());
  return bag;
}

Vectors tf_idf(const std::vector<Bag>& bags, const std::vector<std::string>& words, std::size_t columns) {
  std::vector<std::uint32_t> uses(words.size());
  for (const Bag& bag : bags)
    for (const auto& [word, times] : bag) ++uses[word];

  const double documents = static_cast<double>(bags.size());
  const auto weight = [&](std::uint32_t word, std::uint32_t times) {
    return (1.0 + std::log(times)) * std::log((1.0 + documents) / uses[word]);
  };

  // A word's value is its contribution to vectors of unit length, so that a long document does not
  // choose all words.
  std::vector<double> worth(words.size());
  for (const Bag& bag : bags) {
    double squares = 0;
    for (const auto& [word, times] : bag) squares += weight(word, times) * weight(word, times);
    for (const auto& [word, times] : bag) worth[word] += weight(word, times) / std::sqrt(squares);
  }

  std::vector<std::uint32_t> best(words.size());
  std::iota(best.begin(), best.end(), 0u);
  const std::size_t kept = std::min(columns, words.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept), best.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return worth[a] != worth[b] ? worth[a] > worth[b] : words[a] < words[b];
                    });
  best.resize(kept);

  Vectors vectors{std::vector<float>(bags.size() * columns), bags.size(), columns, {}};
  constexpr std::uint32_t dropped = ~std::uint32_t{0};
  std::vector<std::uint32_t> column(words.size(), dropped);
  for (std::uint32_t i = 0; i < kept; ++i) {
    column[best[i]] = i;
    vectors.words.push_back(words[best[i]]);
  }
  for (std::size_t row = 0; row < bags.size(); ++row)
    for (const auto& [word, times] : bags[row])
      if (column[word] != dropped)
        vectors.values[row * columns + column[word]] = static_cast<float>(weight(word, times));
  return vectors;
}

}  // namespace document_network
