#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace wye::inline v0::models {

/// Bits: a character may be of several kinds. The kinds are those of Hugging Face's tokenizers
/// 0.23.3: Unicode 8 for marks, punctuation and controls, Unicode 9 for decompositions.
enum CharacterKind : std::uint8_t {
  kind_control = 1,       ///< removed by `clean`; also U+FFFD and characters of private use
  kind_space = 2,         ///< ends a word
  kind_mark = 4,          ///< a nonspacing mark (Mn)
  kind_punctuation = 8,   ///< a word by itself: category P, and symbols of ASCII
  kind_ideograph = 16,    ///< a Chinese character
  kind_undecomposed = 32  ///< decomposed or reordered by later versions of Unicode only
};

/// Returns the bits of `CharacterKind`.
std::uint8_t kind(char32_t character) noexcept;

/// Returns the first character of `rest` and removes it. Of bytes that are no UTF-8, it removes the
/// longest beginning of a valid character, otherwise one byte, and returns U+FFFD.
/// Shape:  `rest` is not empty.
/// Source: the WHATWG Encoding standard, UTF-8 decoder.
char32_t take_character(std::string_view& rest) noexcept;

void append_character(std::string& to, char32_t character);

/// Returns `text` if it is UTF-8. Otherwise copies it to `memory`, with U+FFFD for other bytes.
std::string_view valid_utf8(std::string_view text, std::string& memory);

/// The normalization of BERT.
struct Normalizer {
  bool clean = true;       ///< controls are removed, spaces of any kind become U+0020
  bool ideographs = true;  ///< spaces around Chinese characters
  bool accents = true;     ///< decomposes (NFD) and removes nonspacing marks
  bool lower = true;       ///< one character at a time: no rule for the final sigma

  /// Appends the normalized text. `text` is UTF-8.
  void append(std::string_view text, std::string& to) const;
};

/// Calls `use` with each word of `text`, which is UTF-8: words end at spaces, and a punctuation
/// character is a word by itself.
template <class Use>
void for_each_word(std::string_view text, Use&& use) {
  std::string_view rest = text;
  const char* begin = text.data();
  while (!rest.empty()) {
    const char* const at = rest.data();
    const std::uint8_t bits = kind(take_character(rest)) & (kind_space | kind_punctuation);
    if (bits == 0) continue;
    if (at != begin) use(std::string_view(begin, static_cast<std::size_t>(at - begin)));
    if ((bits & kind_space) == 0) use(std::string_view(at, static_cast<std::size_t>(rest.data() - at)));
    begin = rest.data();
  }
  const char* const end = text.data() + text.size();
  if (begin != end) use(std::string_view(begin, static_cast<std::size_t>(end - begin)));
}

}  // namespace wye::models
