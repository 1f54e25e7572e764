#pragma once
/// Reads, splits and displays text of unknown origin.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace document_network {

/// One step through UTF-8.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;  ///< bytes of this step
  bool valid = true;      ///< otherwise `value` is the byte itself
};

/// Returns the code point at `text[at]`; `at` is less than its size.
CodePoint code_point(std::string_view text, std::size_t at);

void append_utf8(std::string& text, char32_t value);

/// Converts `text` to UTF-8: a byte that is not UTF-8 is read as Latin-1, the encoding of old
/// files. Returns whether there was one.
bool repair_utf8(std::string& text);

/// Returns whether `text` looks binary: it has a zero byte or many control characters.
bool is_binary(std::string_view text);

/// Calls `visit` with each word of UTF-8 `text`: runs of two to forty letters, in lower case. An
/// ideograph is a word by itself.
void for_each_word(std::string_view text, const std::function<void(std::string_view)>& visit);

/// Returns the first `most` passages of `text`: at most `words` words each, which blanks separate. In
/// its second half, a passage ends with a paragraph, or otherwise with its last sentence; if it has
/// neither there, with its last paragraph. An empty line ends a paragraph, as does the word "." of
/// Debian's copyright files. Words of signs alone are omitted.
std::vector<std::string> passages(std::string_view text, std::size_t words, std::size_t most);

/// Divides `passage` into sentences of at least five words.
std::vector<std::string> sentences(std::string_view passage);

/// Returns `text` for a terminal in at most `most` lines of `width` characters, divided at blanks. If it
/// is longer, the last line ends with an ellipsis.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t most);

/// Returns `text` for a terminal or picture: bytes that are not UTF-8 and control characters become
/// U+FFFD; text longer than `limit` characters loses its middle.
std::string printable(std::string_view text, std::size_t limit = static_cast<std::size_t>(-1));

/// Sets `value` to the number that `text` is. Returns whether it is one, and nothing else.
template <class T>
bool read_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

/// Counts the characters of UTF-8 text.
std::size_t length(std::string_view text);

}  // namespace document_network
