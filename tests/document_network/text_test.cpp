#include "text.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace document_network;
using namespace std::string_literals;

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  for_each_word(text, [&](std::string_view word) { list.emplace_back(word); });
  return list;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("words are runs of two to forty letters, in lower case", "[document_network]") {
  CHECK(words("The GNU General Public License, v2 (1991)") ==
        Words{"the", "gnu", "general", "public", "license"});
  CHECK(words("don't") == Words{"don"});
  CHECK(words("") == Words{});
  CHECK(words("1 2 3 --- ...") == Words{});
  CHECK(words(std::string(40, 'q')) == Words{std::string(40, 'q')});
  CHECK(words(std::string(41, 'q') + " short") == Words{"short"});
}

TEST_CASE("words may be in other alphabets", "[document_network]") {
  CHECK(words("Straße ÉTÉ Ωμέγα Привет") == Words{"straße", "été", "ωμέγα", "привет"});
  CHECK(words("自由软件") == Words{"自", "由", "软", "件"});
  CHECK(words("“quoted”—text") == Words{"quoted", "text"});
}

TEST_CASE("UTF-8 is left alone and anything else is read as Latin-1", "[document_network]") {
  std::string good = "naïve – 漢 🎉";
  const std::string before = good;
  CHECK_FALSE(repair_utf8(good));
  CHECK(good == before);

  std::string latin = "Fran\xe7ois caf\xe9";
  CHECK(repair_utf8(latin));
  CHECK(latin == "François café");

  std::string cut = "caf\xc3";  // the second byte is missing
  CHECK(repair_utf8(cut));
  CHECK(cut == "cafÃ");
}

TEST_CASE("what only looks like UTF-8 is not", "[document_network]") {
  for (const std::string& bytes :
       {"\xc0\xaf"s, "\xe0\x80\xaf"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s, "\xff"s, "\x80"s, "\xe2\x82"s}) {
    CAPTURE(bytes);
    const CodePoint c = code_point(bytes, 0);
    CHECK_FALSE(c.valid);
    CHECK(c.bytes == 1);
  }
  CHECK(code_point("\xe2\x82\xac", 0).value == 0x20AC);
  CHECK(code_point("\xf4\x8f\xbf\xbf", 0).value == 0x10FFFF);
}

TEST_CASE("a file with zero bytes or many control characters is binary", "[document_network]") {
  CHECK(
      is_binary("\x7f"
                "ELF\0\1\2"s));
  CHECK(is_binary("\1\2\3\4\5 text"));
  CHECK_FALSE(is_binary("text\twith\r\nlines\f"));
  CHECK_FALSE(is_binary("caf\xe9"));
}

TEST_CASE("printable text cannot move the cursor and is as short as asked", "[document_network]") {
  CHECK(printable("a\nb\x1b[31m") ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD[31m");
  CHECK(printable("\xff") == "\xEF\xBF\xBD");
  CHECK(printable("right\xe2\x80\xae"
                  "left") == "right\xEF\xBF\xBDleft");
  CHECK(printable("abcdefghij", 5) == "ab…ij");
  CHECK(length(printable("äöüäöüäöü", 4)) == 4);
  CHECK(printable("short", 5) == "short");
  CHECK(printable("any", 0).empty());
}

TEST_CASE("a text is divided into passages of as many words", "[document_network]") {
  using Passages = std::vector<std::string>;
  CHECK(passages("", 2, 9).empty());
  CHECK(passages(" \n\t ", 2, 9).empty());
  CHECK(passages("one", 2, 9) == Passages{"one"});
  CHECK(passages(" one\n two\tthree ", 2, 9) == Passages{"one two", "three"});
  CHECK(passages("1 2 3 4", 2, 9) == Passages{"1 2", "3 4"});
  CHECK(passages("1 2 3 4 5", 2, 2) == Passages{"1 2", "3 4"});
}

TEST_CASE("a passage ends with a paragraph or a sentence in its second half", "[document_network]") {
  using Passages = std::vector<std::string>;
  CHECK(passages("a b c. d e", 4, 9) == Passages{"a b c.", "d e"});
  CHECK(passages("a. b c d e", 4, 9) == Passages{"a. b c d", "e"});
  CHECK(passages("a b: 2. c d", 4, 9) == Passages{"a b: 2. c", "d"});
  CHECK(passages("a b 2. c d", 4, 9) == Passages{"a b 2.", "c d"});
  CHECK(passages("a; b? c! d e f", 5, 9) == Passages{"a; b? c!", "d e f"});
  CHECK(passages("a b c\n\nd e f", 5, 9) == Passages{"a b c", "d e f"});
  CHECK(passages("a b c\n .\n d e f", 5, 9) == Passages{"a b c", "d e f"});
  CHECK(passages("a\n\nb\nc d e f", 5, 9) == Passages{"a", "b c d e f"});
  CHECK(passages("a\n\nb c", 5, 9) == Passages{"a b c"});
  CHECK(passages(".\n.\n.", 2, 9).empty());
  CHECK(passages("/* a\n * b\n * 1) ©\n **/ ----- c", 9, 9) == Passages{"a b 1) © c"});
  CHECK(passages("a b c. d e f. g h i.", 4, 2) == Passages{"a b c.", "d e f."});
}

TEST_CASE("sentences have five words or more", "[document_network]") {
  using Sentences = std::vector<std::string>;
  CHECK(sentences("").empty());
  CHECK(sentences("One.") == Sentences{"One."});
  CHECK(sentences("This is the first one. This is the second one.") ==
        Sentences{"This is the first one.", "This is the second one."});
  CHECK(sentences("No. This is the first one. Yes.") == Sentences{"No. This is the first one. Yes."});
  CHECK(sentences("the conditions are as follows; 2. the name must not change") ==
        Sentences{"the conditions are as follows;", "2. the name must not change"});
}

TEST_CASE("a text is wrapped at blanks, and its rest is an ellipsis", "[document_network]") {
  using Lines = std::vector<std::string>;
  CHECK(wrapped("", 5, 2).empty());
  CHECK(wrapped("ab cd ef", 5, 2) == Lines{"ab cd", "ef"});
  CHECK(wrapped("ab cd ef gh", 5, 2) == Lines{"ab cd", "ef gh"});
  CHECK(wrapped("ab cd ef gh ij", 5, 2) == Lines{"ab cd", "ef…"});
  CHECK(wrapped("ab cd e fg", 5, 2) == Lines{"ab cd", "e fg"});
  CHECK(wrapped("abcdefgh ij", 5, 1) == Lines{"ab…h…"});
  CHECK(wrapped("a\x1b[m b", 9, 1) == Lines{"a\xEF\xBF\xBD[m b"});
}
