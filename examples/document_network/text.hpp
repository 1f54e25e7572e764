#pragma once
/// Text of unknown origin: reading it, taking it apart, and showing it.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace document_network {

/// One step through UTF-8.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;  ///< how far to go on
  bool valid = true;      ///< else `value` is the byte itself
};

/// The code point at `text[at]`; `at` is less than its size.
CodePoint code_point(std::string_view text, std::size_t at);

void append_utf8(std::string& text, char32_t value);

/// Makes `text` UTF-8: a byte that is not part of any is read as Latin-1, which is what old files are in.
/// Returns whether there was one.
bool repair_utf8(std::string& text);

/// Whether `text` looks like anything but text: a zero byte, or control characters in number.
bool is_binary(std::string_view text);

/// Calls `visit` with each word of `text`, which is UTF-8: runs of two to forty letters, in lower case.
/// An ideograph is a word of its own.
void for_each_word(std::string_view text, const std::function<void(std::string_view)>& visit);

/// `text` as it can be shown on a terminal and in a picture: what is not UTF-8 or controls the terminal
/// becomes U+FFFD; what is longer than `limit` characters loses its middle.
std::string printable(std::string_view text, std::size_t limit = static_cast<std::size_t>(-1));

/// Characters of UTF-8 text.
std::size_t length(std::string_view text);

}  // namespace document_network
