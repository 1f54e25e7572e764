#include "findings.hpp"

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
