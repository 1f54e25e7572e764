#include "wordpiece.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace wye::inline v0::models {
namespace {

using Entries = std::vector<std::pair<std::string_view, std::uint32_t>>;

Trie trie_of_pieces(const WordPieceParts& parts) {
  Entries entries;
  for (std::uint32_t token = 0; token < parts.pieces.size(); ++token)
    if (parts.listed[token] != 0) entries.emplace_back(parts.pieces[token], token);
  return Trie(entries);
}

/// If two tokens have one normalized form, the first is found.
Trie trie_of_added(const WordPieceParts& parts, bool normalized) {
  std::map<std::string, std::uint32_t> forms;
  for (const AddedToken& added : parts.added) {
    if (added.normalized != normalized) continue;
    std::string form;
    if (normalized)
      parts.normalizer.append(parts.pieces[added.token], form);
    else
      form = parts.pieces[added.token];
    forms.emplace(std::move(form), added.token);
  }
  Entries entries(forms.begin(), forms.end());
  return Trie(entries);
}

/// Calls `between` with the texts around the strings of `trie`, and `found` with their tokens.
template <class Between, class Found>
void split(std::string_view text, const Trie& trie, Between&& between, Found&& found) {
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const Trie::Match match = trie.longest(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    if (at > begin) between(text.substr(begin, at - begin));
    found(match.value);
    begin = at += match.length;
  }
  if (begin < text.size()) between(text.substr(begin));
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

WordPiece::WordPiece(WordPieceParts parts)
    : parts_(std::move(parts)),
      pieces_(trie_of_pieces(parts_)),
      added_(trie_of_added(parts_, false)),
      normalized_added_(trie_of_added(parts_, true)),
      behind_prefix_(pieces_.find(parts_.prefix)) {}

std::vector<std::uint32_t> WordPiece::encode(std::string_view text) const {
  std::vector<std::uint32_t> tokens;
  tokens.reserve(text.size() / 4);
  const auto add = [&](std::uint32_t token) { tokens.push_back(token); };
  std::string memory, normalized;
  split(
      valid_utf8(text, memory), added_,
      [&](std::string_view part) {
        normalized.clear();
        parts_.normalizer.append(part, normalized);
        split(
            normalized, normalized_added_,
            [&](std::string_view rest) {
              for_each_word(rest, [&](std::string_view word) { encode_word(word, tokens); });
            },
            add);
      },
      add);
  return tokens;
}

void WordPiece::encode_word(std::string_view word, std::vector<std::uint32_t>& tokens) const {
  const std::size_t before = tokens.size();
  if (word.size() > parts_.longest_word && count_characters(word) > parts_.longest_word)
    return tokens.push_back(parts_.unknown);
  for (std::string_view rest = word; !rest.empty();) {
    const bool first = rest.size() == word.size();
    if (!first && !behind_prefix_) break;
    const auto match = pieces_.longest(rest, first ? Trie::root : *behind_prefix_);
    if (match.length == 0) break;
    tokens.push_back(match.value);
    rest.remove_prefix(match.length);
    if (rest.empty()) return;
  }
  tokens.resize(before);
  tokens.push_back(parts_.unknown);
}

}  // namespace wye::models
