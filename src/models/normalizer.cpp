#include "normalizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

namespace wye::inline v0::models {
namespace {

constexpr char32_t replacement = 0xFFFD;

struct KindRange {
  char32_t first, last;
  std::uint8_t bits;
};
constexpr KindRange kind_ranges[] = {
#include "character_kinds.inc"
};

constexpr std::uint8_t find_kind(char32_t character) noexcept {
  const auto* const found = std::ranges::lower_bound(kind_ranges, character, {}, &KindRange::last);
  return found != std::end(kind_ranges) && found->first <= character ? found->bits : std::uint8_t{0};
}

constexpr auto kinds_of_ascii = [] {
  std::array<std::uint8_t, 128> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = find_kind(static_cast<char32_t>(i));
  return bits;
}();

/// Capitals of Unicode 16 and 17, which utf8proc 2.8 (Unicode 15) does not know.
struct Capitals {
  char32_t first, last, step, lower;  // `lower` is that of `first`
};
constexpr Capitals later_capitals[] = {
    {0x1C89, 0x1C89, 1, 0x1C8A},    {0xA7CB, 0xA7CB, 1, 0x264},     {0xA7CC, 0xA7CE, 2, 0xA7CD},
    {0xA7D2, 0xA7D4, 2, 0xA7D3},    {0xA7DA, 0xA7DA, 1, 0xA7DB},    {0xA7DC, 0xA7DC, 1, 0x19B},
    {0x10D50, 0x10D65, 1, 0x10D70}, {0x16EA0, 0x16EB8, 1, 0x16EBB},
};

char32_t lower_of(char32_t character) noexcept {
  for (const Capitals& capitals : later_capitals)
    if (character >= capitals.first && character <= capitals.last &&
        (character - capitals.first) % capitals.step == 0)
      return capitals.lower + (character - capitals.first);
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

void append_lower(std::string& to, char32_t character) {
  if (character < 0x80) {
    to += static_cast<char>(character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character);
  } else if (character == 0x130) {
    to += "i\u0307";
  } else {
    append_character(to, lower_of(character));
  }
}

/// Writes characters in canonical order, without marks.
class Decomposer {
 public:
  Decomposer(std::string& to, bool lower) : to_(to), lower_(lower) {}
  ~Decomposer() { flush(); }

  void add(char32_t character) {
    if (character < 0xC0) return put(character, 0);  // neither decomposed nor reordered
    if ((kind(character) & kind_undecomposed) != 0) return put(character, 0);
    utf8proc_int32_t parts[8];  // canonical decompositions have at most four characters
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts,
                                               std::size(parts), UTF8PROC_DECOMPOSE, &boundary);
    if (count < 1 || count > std::ssize(parts)) return put(character, 0);
    for (const auto part : std::span(parts, static_cast<std::size_t>(count)))
      put(static_cast<char32_t>(part), utf8proc_get_property(part)->combining_class);
  }

 private:
  struct Waiting {
    char32_t character;
    int order;  // the canonical combining class
  };
  void put(char32_t character, int order) {
    if (order == 0) flush();
    if ((kind(character) & kind_mark) != 0) return;
    if (order == 0)
      write(character);
    else
      waiting_.push_back({character, order});
  }
  void flush() {
    if (waiting_.empty()) return;
    std::ranges::stable_sort(waiting_, {}, &Waiting::order);
    for (const Waiting& one : waiting_) write(one.character);
    waiting_.clear();
  }
  void write(char32_t character) { lower_ ? append_lower(to_, character) : append_character(to_, character); }

  std::string& to_;
  bool lower_;
  std::vector<Waiting> waiting_;
};

}  // namespace

std::uint8_t kind(char32_t character) noexcept {
  return character < kinds_of_ascii.size() ? kinds_of_ascii[character] : find_kind(character);
}

char32_t take_character(std::string_view& rest) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) {
    rest.remove_prefix(1);
    return first;
  }
  std::size_t more = 0;
  unsigned low = 0x80, high = 0xBF;  // of the second byte
  char32_t character = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    more = 1, character = first & 0x1F;
  } else if (first >= 0xE0 && first <= 0xEF) {
    more = 2, character = first & 0xF;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    more = 3, character = first & 7;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    rest.remove_prefix(1);
    return replacement;
  }
  for (std::size_t i = 1; i <= more; ++i) {
    if (i == rest.size() || byte(i) < low || byte(i) > high) {
      rest.remove_prefix(i);
      return replacement;
    }
    character = character << 6 | (byte(i) & 0x3F);
    low = 0x80, high = 0xBF;
  }
  rest.remove_prefix(more + 1);
  return character;
}

void append_character(std::string& to, char32_t character) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    to += static_cast<char>(character);
  } else if (character < 0x800) {
    to += static_cast<char>(0xC0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    to += static_cast<char>(0xE0 | character >> 12);
    tail(6), tail(0);
  } else {
    to += static_cast<char>(0xF0 | character >> 18);
    tail(12), tail(6), tail(0);
  }
}

std::string_view valid_utf8(std::string_view text, std::string& memory) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view before = rest;
    // The three bytes of a U+FFFD in the text are valid.
    if (take_character(rest) != replacement || before.substr(0, 3) == "\uFFFD") continue;
    memory.assign(text.data(), before.data());
    for (rest = before; !rest.empty();) append_character(memory, take_character(rest));
    return memory;
  }
  return text;
}

void Normalizer::append(std::string_view text, std::string& to) const {
  to.reserve(to.size() + text.size());
  Decomposer decomposer(to, lower);
  const auto add = [&](char32_t character) {
    if (accents) return decomposer.add(character);
    lower ? append_lower(to, character) : append_character(to, character);
  };
  for (std::string_view rest = text; !rest.empty();) {
    char32_t character = take_character(rest);
    const std::uint8_t bits = kind(character);
    if (clean && (bits & kind_control) != 0) continue;
    if (clean && (bits & kind_space) != 0) character = ' ';
    const bool spaced = ideographs && (bits & kind_ideograph) != 0;
    if (spaced) add(' ');
    add(character);
    if (spaced) add(' ');
  }
}

}  // namespace wye::models
