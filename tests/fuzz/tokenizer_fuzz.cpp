// The files of a tokenizer are accepted or refused; any text becomes tokens whose pieces spell its words.
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/edits.hpp"
#include "models/tokenizer_files.hpp"

namespace {

using namespace wye;
using models::WordPiece;
using Tokens = std::vector<std::uint32_t>;

constexpr std::string_view valid = R"({
"added_tokens": [{"id": 1, "content": "[CLS]", "single_word": false, "normalized": false},
                 {"id": 17, "content": "Ab", "single_word": false, "normalized": true}],
"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
               "strip_accents": null, "lowercase": true},
"pre_tokenizer": {"type": "BertPreTokenizer"},
"post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]},
"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
          "max_input_chars_per_word": 9,
          "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##a": 4, "##b": 5, "##ab": 6, "ba": 7,
                    "\u4e2d": 8, "\u1112": 9, "##\u1161": 10, "##\u11ab": 11, "!": 12, "##\u302e": 13,
                    "##\u302b": 14, "i": 15, "\u00e9": 16}}})";
constexpr std::string_view lines = "[UNK]\n[CLS]\n[SEP]\na\n##a\n##b\n\xc3\xa9\n";
constexpr std::string_view config =
    R"({"do_lower_case": false, "strip_accents": true, "mask_token": "a", "tokenizer_class": "BertTokenizer",
"added_tokens_decoder": {"7": {"content": "b", "single_word": false, "normalized": true}}})";

void expect(bool holds) {
  if (!holds) std::abort();
}

std::string_view text_of(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::vector<std::uint8_t> edited(std::string_view text, test::Input& input) {
  return test::edited(std::vector<std::uint8_t>(text.begin(), text.end()), input);
}

Tokens joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Requires that the pieces of `tokens` spell the words of `text`, or are [UNK].
void expect_words(const models::WordPieceParts& parts, std::string_view text, const Tokens& tokens) {
  std::string memory, normalized;
  parts.normalizer.append(models::valid_utf8(text, memory), normalized);
  std::size_t next = 0;
  models::for_each_word(normalized, [&](std::string_view word) {
    expect(next < tokens.size());
    if (tokens[next] == parts.unknown) {
      ++next;
      return;
    }
    for (std::string_view rest = word; !rest.empty(); ++next) {
      expect(next < tokens.size());
      std::string_view piece = parts.pieces[tokens[next]];
      if (rest.size() < word.size()) {
        expect(piece.starts_with(parts.prefix));
        piece.remove_prefix(parts.prefix.size());
      }
      expect(!piece.empty() && rest.starts_with(piece));
      rest.remove_prefix(piece.size());
    }
  });
  expect(next == tokens.size());
}

void fuzz_text(std::string_view text) {
  static const WordPiece words = [] {
    auto json = models::parse_json(valid, "Sample");
    return WordPiece(models::parse_tokenizer(*json, "sample").value());
  }();
  static const WordPiece plain = [] {  // no token is found before the words
    auto parts = words.parts();
    parts.added.clear();
    return WordPiece(std::move(parts));
  }();
  const Tokens tokens = words.encode(text);
  for (const auto token : tokens) expect(token < words.parts().pieces.size());
  std::string memory;
  expect(words.encode(models::valid_utf8(text, memory)) == tokens);
  const std::string_view half = text.substr(0, text.size() / 2), rest = text.substr(text.size() / 2);
  expect(words.encode(std::string(half) + " " + std::string(rest)) ==
         joined(words.encode(half), words.encode(rest)));
  expect_words(plain.parts(), text, plain.encode(text));
}

void fuzz_files(bool json, test::Input& input) {
  const Errc refused[] = {Errc::corrupt, Errc::unsupported};
  const auto use = [&](const Result<models::WordPieceParts>& parts) {
    if (!parts) return expect(parts.error() == refused[0] || parts.error() == refused[1]);
    const WordPiece words(*parts);
    expect(parts->begin < parts->pieces.size() && parts->end < parts->pieces.size());
    for (const std::string_view text : {valid, lines, std::string_view("aab ba i\xff")})
      for (const auto token : words.encode(text)) expect(token < parts->pieces.size());
  };
  if (json) {
    const auto bytes = edited(valid, input);
    const auto root = models::parse_json(text_of(bytes), "Sample");
    if (root) use(models::parse_tokenizer(*root, "sample"));
    if (text_of(bytes) == valid) expect(root.has_value());
    return;
  }
  const bool edit_lines = input.take<std::uint8_t>() % 2 == 0;
  const auto bytes = edited(edit_lines ? lines : config, input);
  const auto root = models::parse_json(edit_lines ? config : text_of(bytes), "Sample");
  if (root) use(models::parse_vocabulary(edit_lines ? text_of(bytes) : lines, "sample", *root, "config"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::Input input(data, size);
  const auto subject = input.take<std::uint8_t>() % 4;
  const auto rest = input.rest();
  if (subject < 2)
    fuzz_text({reinterpret_cast<const char*>(rest.data()), rest.size()});
  else
    fuzz_files(subject == 2, input);
  return 0;
}
