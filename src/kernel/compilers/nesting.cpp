#include "kernel/compilers/nesting.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/text.hpp"
#include "kernel/compilers/diagnostics.hpp"
#include "kernel/compilers/glsl.hpp"

namespace wye::inline v0::kernel {
namespace {

constexpr std::size_t most_brackets = 1'000;  // nested
constexpr std::size_t most_tokens = 10'000;   // without a separator

std::optional<Diagnostic> too_deep(std::string_view text, const std::string& shown) {
  std::size_t brackets = 0, tokens = 0;
  for (std::size_t at = skip_blank(text, 0); at < text.size(); at = skip_blank(text, at)) {
    constexpr std::string_view separators = "([{#;,}])";  // a directive separates, too
    const std::size_t kind = separators.find(text[at]);
    if (kind < 3) ++brackets;
    if (kind > 5 && kind != separators.npos && brackets > 0) --brackets;
    tokens = kind == separators.npos ? tokens + 1 : 0;
    if (brackets > most_brackets || tokens > most_tokens) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      return Diagnostic{.file = shown,
                        .line = static_cast<std::uint32_t>(line),
                        .text = brackets > most_brackets
                                    ? base::text("brackets are nested deeper than {}", most_brackets)
                                    : base::text("an expression has more than {} parts", most_tokens)};
    }
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at) at += text[at] == '\\';
      at = std::min(at + 1, text.size());
    } else if (is_word(text[at])) {
      while (at < text.size() && is_word(text[at])) ++at;
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_nesting(std::string_view text, const std::vector<SourceText>& texts,
                           const std::string& kernel) {
  for (const SourceText& one : texts)
    if (auto deep = too_deep(&one == &texts.front() ? text : one.text, one.shown))
      return compile_error(kernel, {std::move(*deep)});
  return {};
}

}  // namespace wye::kernel
