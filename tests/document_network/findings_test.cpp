#include "findings.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace document_network;

namespace {

std::vector<Document> documents(std::size_t count, std::size_t known) {
  std::vector<Document> list;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    list.push_back({"/" + name, name, 0, i < known});
  }
  return list;
}

}  // namespace

TEST_CASE("the highest ranked are ten at most, equal ones in their order", "[document_network]") {
  const auto top = highest_ranked(documents(12, 0), {.1f, .3f, .1f, .3f, 0, 0, 0, 0, 0, 0, 0, .2f});
  REQUIRE(top.size() == 10);
  CHECK(top[0].path == "/b");
  CHECK(top[1].label == "d");
  CHECK(top[2].label == "l");
  CHECK(top[3].label == "a");
  CHECK(highest_ranked(documents(1, 0), {1.0f}).size() == 1);
}

TEST_CASE("neighbours are valid JSON, whatever the bytes of the paths", "[document_network]") {
  const std::vector<Document> documents{{"/a\xff\"\n", "a", 0, false}, {"/b", "b", 0, false}};
  CHECK(neighbours_json(documents, {{{1, 0.5f, 0.9f}}, {}}) ==
        "{\"documents\":[\"/a\xEF\xBF\xBD\\\"\\n\",\"/b\"],\"neighbours\":[[[1,0.5]],[]]}\n");
}

TEST_CASE("alike pairs are told once, most alike first, copies not among them", "[document_network]") {
  const Neighbours neighbours{{{1, 0.9f, 0}, {3, 1.0f, 0}},
                              {{0, 0.9f, 0}, {2, 0.95f, 0}},
                              {{1, 0.95f, 0}},
                              {{0, 1.0f, 0}, {2, 0.4f, 0}, {1, 0.1f, 0}}};
  const auto pairs = most_alike(documents(4, 0), neighbours);
  REQUIRE(pairs.size() == 3);
  CHECK((pairs[0].a == "b" && pairs[0].b == "c"));
  CHECK((pairs[1].a == "a" && pairs[1].b == "b"));
  CHECK((pairs[2].a == "c" && pairs[2].b == "d"));
  CHECK(count_copies(neighbours) == 1);
}

TEST_CASE("where some documents are known, the alike are among them", "[document_network]") {
  const Neighbours neighbours{{{1, 0.5f, 0}, {2, 0.9f, 0}}, {{0, 0.5f, 0}}, {{0, 0.9f, 0}}};
  const auto pairs = most_alike(documents(3, 2), neighbours);
  REQUIRE(pairs.size() == 1);
  CHECK((pairs[0].a == "a" && pairs[0].b == "b"));
}

TEST_CASE("the nearest by words and by meaning are side by side, without copies", "[document_network]") {
  // a and d are copies of each other by meaning; by words, c is nearest to a.
  const Neighbours by_meaning{{{3, 1.0f, 0}, {1, 0.8f, 0}}, {{0, 0.8f, 0}}, {{1, 0.3f, 0}}, {{0, 1.0f, 0}}};
  const Vectors words{.values = {1, 0, 0, 2, 3, 3, 0, 0}, .rows = 4, .columns = 2, .words = {}};
  const auto both = nearest_of_both(documents(4, 0), words, by_meaning, {.4f, .2f, .1f, .3f});
  REQUIRE(both.size() == 3);
  CHECK(both[0].document == "a");
  CHECK(both[0].by_words == "c");
  CHECK(both[0].words_similarity == Approx(std::sqrt(0.5)));
  CHECK(both[0].by_meaning == "b");
  CHECK(both[0].meaning_similarity == Approx(0.8));
  CHECK(both[1].document == "b");
  CHECK(both[2].document == "c");
}

TEST_CASE("the answers are the nearest passages, each with its first document", "[document_network]") {
  Meaning meaning;
  meaning.passages = {"one", "two", "three"};
  meaning.passages_of = {{0}, {1, 0}, {2, 1}};
  meaning.near = {{1, "t", 0.9f, {1, 0, 0}}, {2, "th", 0.5f, {0, 1, 0}}, {0, "o", 0.1f, {0, 0, 1}}};
  const auto answers = best_answers(documents(3, 0), meaning);
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].label == "b");
  CHECK(answers[0].sentence == "t");
  CHECK(answers[0].passage == "two");
  CHECK(answers[0].similarity == Approx(0.9));
  CHECK(answers[1].label == "c");
  CHECK(answers[2].label == "a");
}

TEST_CASE("a document is one answer, and so are nearly equal sentences", "[document_network]") {
  Meaning meaning;
  meaning.passages = {"one", "two", "three", "four"};
  meaning.passages_of = {{0, 1}, {2}, {3}};
  meaning.near = {{1, "", 0.9f, {1, 0}},
                  {0, "", 0.8f, {0, 1}},
                  {2, "", 0.7f, {0.96f, 0.28f}},
                  {3, "", 0.6f, {0.8f, 0.6f}}};
  const auto answers = best_answers(documents(3, 0), meaning);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].passage == "two");
  CHECK(answers[1].passage == "four");
}
