// Files of models are checked before anything reads them.
#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

#include "models/json.hpp"
#include "models/mapped_file.hpp"

using namespace wye;

TEST_CASE("JSON that is cut, that names a key twice, or that is no UTF-8 is corrupt", "[models]") {
  CHECK(models::parse_json(R"({"a": [1, {"b": 2}], "c": {"b": 3}})", "Text").value()["a"][1]["b"] == 2);
  for (const auto& [text, sentence] : {
           std::pair(R"({"a": 1, "b)", "is no JSON"),
           std::pair(R"({"a": 1} x)", "is no JSON: the error is at byte 10"),
           std::pair(R"({"a": "\xff"})", "is no JSON"),
           std::pair("{\"a\": \"\xff\"}", "is no JSON"),
           std::pair(R"([{"a": {"b": 1, "c": 2, "b": 3}}])", "names the key 'b' twice"),
           std::pair("", "is no JSON"),
       }) {
    INFO(text);
    const auto parsed = models::parse_json(text, "Text");
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error() == Errc::corrupt);
    CHECK(parsed.error().sentence().find(sentence) != std::string::npos);
  }
  const auto zero = models::parse_json(std::string_view("{}\0 not read", 12), "Text");
  REQUIRE_FALSE(zero);
  CHECK(zero.error().sentence() == "Text is no JSON: the error is at byte 3 of 12.");
  CHECK(models::parse_json(std::string(1'000'000, '['), "Text").error() == Errc::corrupt);
}

TEST_CASE("a file that is missing, a folder and a pipe have their own errors", "[models]") {
  CHECK(models::MappedFile::open("no/such/file").error() == Errc::not_found);
  CHECK(models::MappedFile::open("/dev/null").error() == Errc::invalid_argument);
  const auto folder = models::MappedFile::open("/tmp");
  REQUIRE_FALSE(folder);
  CHECK(folder.error() == Errc::invalid_argument);
  CHECK(folder.error().sentence() == "'/tmp' is no regular file.");
  CHECK(models::MappedFile::open(WYE_SOURCE_FOLDER "/LICENSE")->bytes().size() > 1000);
}
