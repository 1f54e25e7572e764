#include "corpus.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "support/temporary_folder.hpp"

using namespace document_network;

namespace {

Corpus corpus_of(const TemporaryFolder& folder, std::size_t wanted) {
  wye::ProgressBars progress(stderr);
  return gather(find_documents(folder.path().string()), wanted, progress);
}

std::size_t words_in(const Bag& bag) {
  return std::accumulate(bag.begin(), bag.end(), std::size_t{0},
                         [](std::size_t sum, const auto& word) { return sum + word.second; });
}

}  // namespace

TEST_CASE("synthetic documents are passages of the others, and the same every time", "[document_network]") {
  const TemporaryFolder folder;
  for (char file = 'a'; file <= 'e'; ++file) {
    std::string text;
    for (int word = 0; word < 300; ++word)
      text += std::string(1, file) + static_cast<char>('a' + word % 26) +
              static_cast<char>('a' + word * word % 17) + " ";
    folder.put(std::string(1, file), text);
  }
  const Corpus corpus = corpus_of(folder, 500), again = corpus_of(folder, 500);
  REQUIRE(corpus.documents.size() == 500);
  REQUIRE(corpus.bags.size() == 500);
  CHECK(corpus.synthetic == 495);
  CHECK(corpus.bags == again.bags);
  std::set<Bag> distinct;
  std::set<std::string> paths;
  for (std::size_t i = 0; i < corpus.bags.size(); ++i) {
    const Document& document = corpus.documents[i];
    CHECK(document.path == again.documents[i].path);
    distinct.insert(corpus.bags[i]);
    paths.insert(document.path);
    if (i < 5) continue;
    CHECK(document.path == "synthetic/" + std::to_string(i - 5));
    CHECK(document.label.substr(1) == " (synthetic " + std::to_string(i - 5) + ")");
    CHECK_FALSE(document.known);
    CHECK(std::is_sorted(corpus.bags[i].begin(), corpus.bags[i].end()));
    CHECK(words_in(corpus.bags[i]) >= 80);
    CHECK(words_in(corpus.bags[i]) <= 318);
    std::set<char> sources;  // a word's first letter is its file's name
    for (const auto& [word, times] : corpus.bags[i]) sources.insert(corpus.vocabulary.words()[word][0]);
    CHECK(sources.size() <= 2);
    CHECK(sources.contains(document.label[0]));
  }
  CHECK(paths.size() == 500);
  CHECK(distinct.size() > 490);
}

TEST_CASE("a short document is a passage as a whole, and without documents none are synthetic",
          "[document_network]") {
  const TemporaryFolder folder;
  CHECK(corpus_of(folder, 10).documents.empty());
  folder.put("empty", "");
  CHECK(corpus_of(folder, 10).documents.empty());
  folder.put("short", "three short words");
  const Corpus corpus = corpus_of(folder, 10);
  REQUIRE(corpus.documents.size() == 10);
  CHECK(corpus.synthetic == 9);
  CHECK(corpus.skipped == Skipped{{"empty", 1}});
  for (std::size_t i = 1; i < 10; ++i) CHECK(words_in(corpus.bags[i]) == 6);
  CHECK(corpus_of(folder, 1).synthetic == 0);
  CHECK(corpus_of(folder, 0).documents.size() == 1);
}
