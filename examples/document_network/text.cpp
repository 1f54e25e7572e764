#include "text.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace document_network {
namespace {

constexpr char32_t replacement = 0xFFFD;
constexpr std::size_t shortest_word = 2, longest_word = 40;

bool is_ideograph(char32_t c) { return (c >= 0x3040 && c <= 0x9FFF) || (c >= 0x20000 && c <= 0x3FFFF); }

bool is_letter(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (c < 0xC0 || c == 0xD7 || c == 0xF7) return false;  // Latin-1 signs
  if (c >= 0x2000 && c <= 0x303F) return false;          // punctuation, arrows, symbols
  if (c >= 0xE000 && c <= 0xF8FF) return false;          // private use
  return c < 0xFE00 || (c >= 0x20000 && c <= 0x3FFFF);
}

/// Lower case for alphabets with one rule: Latin, Greek, Cyrillic.
char32_t lower(char32_t c) {
  if ((c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE)) return c + 0x20;
  if ((c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F)) return c + 0x20;
  if (c >= 0x400 && c <= 0x40F) return c + 0x50;
  return c;
}

/// Returns whether `c` moves the cursor, changes colours, or reverses the direction of text.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

constexpr std::string_view blanks = " \t\n\v\f\r";

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(blanks); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

std::string join(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

/// Returns whether `word` has only ASCII signs, like the frame of a comment.
bool is_drawing(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 && !is_letter(byte) && (c < '0' || c > '9');
  });
}

/// Returns whether `word` ends with a sign that ends a sentence. A number ("2.") does so only after a
/// word without a sign ("section 2."): otherwise it begins an item of a list.
bool ends_sentence(std::string_view before, std::string_view word) {
  const std::string_view signs = ".!?;:,";
  if (word.empty() || signs.substr(0, 4).find(word.back()) == signs.npos) return false;
  const bool is_number = word.substr(0, word.size() - 1).find_first_not_of("0123456789") == word.npos;
  return !is_number || (!before.empty() && signs.find(before.back()) == signs.npos);
}

}  // namespace

CodePoint code_point(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  bool valid = first >= 0xC2 && first <= 0xF4;
  char32_t value = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; valid && i < bytes; ++i) {
    valid = (byte(i) & 0xC0u) == 0x80;
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  const bool too_long = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool no_character = (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF;
  if (!valid || too_long || no_character) return {first, 1, false};
  return {value, bytes, true};
}

void append_utf8(std::string& text, char32_t value) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto tail = [&](unsigned shift) { put(0x80 | ((value >> shift) & 0x3F)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6)), tail(0);
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12)), tail(6), tail(0);
  } else {
    put(0xF0 | (value >> 18)), tail(12), tail(6), tail(0);
  }
}

bool repair_utf8(std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = code_point(text, at);
    if (!c.valid) break;
    at += c.bytes;
  }
  if (at == text.size()) return false;
  std::string repaired = text.substr(0, at);
  while (at < text.size()) {
    const CodePoint c = code_point(text, at);
    append_utf8(repaired, c.value);
    at += c.bytes;
  }
  text = std::move(repaired);
  return true;
}

bool is_binary(std::string_view text) {
  std::size_t controls = 0;
  for (const char c : text) {
    if (c == '\0') return true;
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\x1b' && c != '\b')
      ++controls;
  }
  return controls > text.size() / 20;
}

void for_each_word(std::string_view text, const std::function<void(std::string_view)>& visit) {
  std::string word;
  std::size_t letters = 0;
  const auto end_word = [&] {
    if (letters >= shortest_word && letters <= longest_word) visit(word);
    word.clear();
    letters = 0;
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point(text, at);
    if (is_ideograph(c.value)) {
      end_word();
      visit(text.substr(at, c.bytes));
    } else if (!is_letter(c.value)) {
      end_word();
    } else if (++letters <= longest_word) {
      append_utf8(word, lower(c.value));
    }
    at += c.bytes;
  }
  end_word();
}

std::vector<std::string> passages(std::string_view text, std::size_t words, std::size_t most) {
  std::vector<std::string> made;
  std::vector<std::string_view> now;        // the words after the last passage
  std::size_t sentence = 0, paragraph = 0;  // of these, the words up to the last end of one
  const auto end_passage = [&](std::size_t count) {
    made.push_back(join({now.data(), count}));
    now.erase(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(count));
    sentence = paragraph = 0;
  };
  std::string_view before;
  std::size_t at = std::min(text.find_first_not_of(blanks), text.size());
  while (at < text.size() && made.size() < most) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    const std::size_t next = std::min(text.find_first_not_of(blanks, end), text.size());
    const std::string_view word = text.substr(at, end - at), between = text.substr(end, next - end);
    if (!is_drawing(word)) now.push_back(word);
    if (ends_sentence(before, word)) sentence = now.size();
    if (word == "." || std::count(between.begin(), between.end(), '\n') > 1) paragraph = now.size();
    if (paragraph == now.size() && paragraph * 2 >= words)
      end_passage(paragraph);
    else if (now.size() == words)
      end_passage(sentence * 2 >= words ? sentence : paragraph > 0 ? paragraph : words);
    before = word;
    at = next;
  }
  if (!now.empty() && made.size() < most) end_passage(now.size());
  return made;
}

std::vector<std::string> sentences(std::string_view passage) {
  constexpr std::size_t fewest = 5;
  std::vector<std::string> made;
  const std::vector<std::string_view> words = split(passage);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t count = i + 1 - begin, left = words.size() - i - 1;
    if (left > 0 && (!ends_sentence(i > 0 ? words[i - 1] : "", words[i]) || count < fewest || left < fewest))
      continue;
    made.push_back(join({words.data() + begin, count}));
    begin = i + 1;
  }
  return made;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t most) {
  std::vector<std::string> lines;
  for (const std::string_view word : split(text)) {
    const std::string shown = printable(word, width);
    if (lines.empty() || length(lines.back()) + 1 + length(shown) > width) {
      if (lines.size() == most) {
        std::string& last = lines.back();
        while (length(last) > width - 1 && last.find(' ') != last.npos) last.resize(last.rfind(' '));
        last = printable(last, width - 1) + "…";
        break;
      }
      lines.push_back(shown);
    } else {
      lines.back() += " " + shown;
    }
  }
  return lines;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::vector<char32_t> characters;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point(text, at);
    characters.push_back(!c.valid || is_control(c.value) ? replacement : c.value);
    at += c.bytes;
  }
  if (characters.size() > limit) {
    const std::size_t front = limit / 2, back = limit - front - (limit > 0 ? 1 : 0);
    characters.erase(characters.begin() + static_cast<std::ptrdiff_t>(front),
                     characters.end() - static_cast<std::ptrdiff_t>(back));
    if (limit > 0) characters.insert(characters.begin() + static_cast<std::ptrdiff_t>(front), U'…');
  }
  std::string shown;
  for (const char32_t c : characters) append_utf8(shown, c);
  return shown;
}

std::size_t length(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += code_point(text, at).bytes) ++count;
  return count;
}

}  // namespace document_network
