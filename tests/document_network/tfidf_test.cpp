#include "tfidf.hpp"

#include <cmath>
#include <string>

#include "support/catch.hpp"

using namespace document_network;

namespace {

struct Counted {
  Vocabulary vocabulary;
  std::vector<Bag> bags;
  explicit Counted(std::initializer_list<const char*> texts) {
    for (const char* text : texts) bags.push_back(vocabulary.count(text));
  }
};

/// The value of `word` in a row; -1 if it has no column.
float value(const Vectors& vectors, std::size_t row, const std::string& word) {
  for (std::size_t column = 0; column < vectors.words.size(); ++column)
    if (vectors.words[column] == word) return vectors.values[row * vectors.columns + column];
  return -1;
}

}  // namespace

TEST_CASE("a bag counts the words of a text", "[document_network]") {
  Vocabulary vocabulary;
  CHECK(vocabulary.count("free as in free speech") == Bag{{0, 2}, {1, 1}, {2, 1}, {3, 1}});
  CHECK(vocabulary.count("speech in speech") == Bag{{2, 1}, {3, 2}});
  CHECK(vocabulary.words() == std::vector<std::string>{"free", "as", "in", "speech"});
  CHECK(vocabulary.count("").empty());
}

TEST_CASE("TF-IDF of three short texts is what it is by hand", "[document_network]") {
  const Counted texts{"free free software", "free beer", "warranty"};
  const Vectors vectors = tf_idf(texts.bags, texts.vocabulary.words(), 8);
  REQUIRE(vectors.rows == 3);
  REQUIRE(vectors.columns == 8);
  REQUIRE(vectors.values.size() == 24);
  REQUIRE(vectors.words.size() == 4);

  // (1 + ln tf) * ln((1 + 3) / df)
  CHECK(value(vectors, 0, "free") == Approx((1 + std::log(2.0)) * std::log(4.0 / 2)));
  CHECK(value(vectors, 0, "software") == Approx(std::log(4.0)));
  CHECK(value(vectors, 1, "free") == Approx(std::log(2.0)));
  CHECK(value(vectors, 1, "beer") == Approx(std::log(4.0)));
  CHECK(value(vectors, 2, "warranty") == Approx(std::log(4.0)));
  CHECK(value(vectors, 2, "free") == 0.0f);
  for (std::size_t column = 4; column < 8; ++column) CHECK(vectors.values[column] == 0.0f);
}

TEST_CASE("the words that tell documents apart are the ones that are kept", "[document_network]") {
  // "the" is in all, "licence" in most, each other word in one.
  const Counted texts{"the licence alpha alpha alpha", "the licence beta", "the licence gamma", "the delta"};
  const Vectors vectors = tf_idf(texts.bags, texts.vocabulary.words(), 5);
  CHECK(vectors.words.size() == 5);
  CHECK(value(vectors, 0, "the") == -1.0f);
  CHECK(value(vectors, 0, "alpha") > 0.0f);
}

TEST_CASE("the same texts give the same bits", "[document_network]") {
  const Counted a{"one two three two", "two three four", "four five"},
      b{"one two three two", "two three four", "four five"};
  const Vectors first = tf_idf(a.bags, a.vocabulary.words(), 4),
                second = tf_idf(b.bags, b.vocabulary.words(), 4);
  CHECK(first.words == second.words);
  CHECK(first.values == second.values);
}

TEST_CASE("no text and one text are no special case", "[document_network]") {
  CHECK(tf_idf({}, {}, 16).values.empty());
  const Counted one{"alone"};
  const Vectors vectors = tf_idf(one.bags, one.vocabulary.words(), 2);
  CHECK(vectors.values[0] == Approx(std::log(2.0)));
  CHECK(vectors.values[1] == 0.0f);
}
