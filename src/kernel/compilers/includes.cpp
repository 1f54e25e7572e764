#include "kernel/compilers/includes.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "kernel/compilers/glsl.hpp"

namespace wye::inline v0::kernel {

namespace {

/// The longest name of an include. The compiler truncates longer names.
constexpr std::size_t most_name = 1000;
/// The most texts of one source, and the most includes of one text.
constexpr std::size_t most_texts = 1000;
/// The most bytes of blanks and comments between `#`, `include` and a name. The limit bounds the
/// search.
constexpr std::size_t most_gap = 256;

/// Returns the length of the UTF-8 sequence at `at`; 0 if it is invalid.
std::size_t sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool shortest = first != 0xe0 || byte(1) >= 0xa0, surrogate = first == 0xed && byte(1) >= 0xa0;
    return shortest && !surrogate && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool shortest = first != 0xf0 || byte(1) >= 0x90, in_range = first != 0xf4 || byte(1) < 0x90;
    return shortest && in_range && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// Returns the reason why bytes are not text ("has a zero byte in line 3"), or an empty string.
std::string not_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence(text, at);
    if (length != 0 && text[at] != '\0') {
      at += length;
      continue;
    }
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    return base::text("{} in line {}", length == 0 ? "is not UTF-8" : "has a zero byte", line);
  }
  return {};
}

void drop_byte_order_mark(std::string& text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
}

/// Returns the length of the line continuation (backslash and end of line) at `at`; 0 if there is
/// none.
std::size_t splice_at(std::string_view text, std::size_t at) {
  return text.substr(at, 2) == "\\\n" ? 2 : text.substr(at, 3) == "\\\r\n" ? 3 : 0;
}

/// Returns `text` with continued lines joined, as the compiler reads it.
std::string spliced(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t splice = splice_at(text, at))
      at += splice;
    else
      result.push_back(text[at++]);
  }
  return result;
}

/// Like `skip_blank`, for a text with line continuations.
std::size_t skip_spliced(std::string_view text, std::size_t at) {
  for (;;) {
    at = skip_blank(text, at);
    const std::size_t splice = splice_at(text, at);
    if (splice == 0) return at;
    at += splice;
  }
}

/// Returns the end of `word` if it begins at `at`, otherwise npos. The word may have line
/// continuations.
std::size_t skip_word(std::string_view text, std::size_t at, std::string_view word) {
  for (const char c : word) {
    while (const std::size_t splice = splice_at(text, at)) at += splice;
    if (at >= text.size() || text[at++] != c) return text.npos;
  }
  return at;
}

void add_use(std::vector<IncludeUse>& uses, std::string_view name, bool angled) {
  if (uses.size() < most_texts && std::none_of(uses.begin(), uses.end(), [&](const IncludeUse& use) {
        return use.angled == angled && use.name == name;
      }))
    uses.push_back({std::string(name), angled});
}

/// Returns every `#include` of a text once, including those in comments.
std::vector<IncludeUse> find_uses(std::string_view text) {
  std::string copy;
  if (text.find("\\\n") != text.npos || text.find("\\\r\n") != text.npos) text = copy = spliced(text);
  std::vector<IncludeUse> uses;
  for (std::size_t hash = text.find('#'); hash != text.npos && uses.size() < most_texts;
       hash = text.find('#', hash + 1)) {
    constexpr std::string_view word = "include";
    std::size_t at = skip_blank(text.substr(0, hash + most_gap), hash + 1);
    if (text.substr(at, word.size()) != word) continue;
    at = skip_blank(text.substr(0, at + word.size() + most_gap), at + word.size());
    if (at == text.size() || (text[at] != '"' && text[at] != '<')) continue;
    const bool angled = text[at] == '<';
    // A name without its closing quote is an error, but the compiler requests it nevertheless.
    std::string_view name = text.substr(at + 1, most_name + 1);
    name = name.substr(0, std::min(name.find(angled ? '>' : '"'), name.find('\n')));
    if (name.size() > most_name || name.find('\0') != name.npos) continue;
    add_use(uses, name, angled);
  }
  return uses;
}

/// Adds the files that Slang searches for `import <name>`.
void add_module(std::vector<IncludeUse>& uses, std::string name) {
  if (name.empty() || name.size() > most_name || name.find('\0') != name.npos) return;
  if (!name.ends_with(".slang")) name += ".slang";
  add_use(uses, name, false);
  std::replace(name.begin(), name.end(), '_', '-');
  add_use(uses, name, false);
}

/// Returns "a/b" for "a.b" or "\"a/b\"" at `at`; empty for other text.
std::string module_name(std::string_view text, std::size_t at) {
  if (at < text.size() && text[at] == '"') {
    const std::string_view name = text.substr(at + 1, most_name + 1);
    return std::string(name.substr(0, std::min(name.find('"'), name.find('\n'))));
  }
  std::string name;
  for (bool more = true; more;) {
    const std::size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
    if (at == begin) return {};
    name.append(text.substr(begin, at - begin));
    at = skip_blank(text.substr(0, at + most_gap), at);
    more = at < text.size() && text[at] == '.';
    if (more) at = skip_blank(text.substr(0, at + most_gap), at + 1), name += '/';
  }
  return name;
}

/// Returns every `#include`, `import` and `__include` of a text once, including those in comments.
std::vector<IncludeUse> find_slang_uses(std::string_view text) {
  std::vector<IncludeUse> uses;
  for (const IncludeUse& use : find_uses(text)) add_use(uses, use.name, false);  // <x> means "x" to Slang
  std::string copy;
  if (text.find("\\\n") != text.npos || text.find("\\\r\n") != text.npos) text = copy = spliced(text);
  for (const std::string_view word : {std::string_view("import"), std::string_view("__include")})
    for (std::size_t found = text.find(word); found != text.npos; found = text.find(word, found + 1)) {
      const std::size_t end = found + word.size();
      if (end < text.size() && is_word(text[end])) continue;
      add_module(uses, module_name(text, skip_blank(text.substr(0, end + most_gap), end)));
    }
  return uses;
}

}  // namespace

std::string normal_path(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, slash - at);
    at = slash + 1;
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..")
      parts.pop_back();
    else
      parts.push_back(part);
  }
  std::string result;
  for (const std::string_view part : parts) result.append(result.empty() ? "" : "/").append(part);
  return result;
}

namespace {

std::string beside(const std::string& includer, const std::string& name) {
  const std::size_t slash = includer.rfind('/');
  return slash == includer.npos ? normal_path(name) : normal_path(includer.substr(0, slash + 1) + name);
}

std::string below(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory == ".") return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

/// Reads the texts of one source. Texts are found in numbered places: 0 is memory, then each
/// directory, then `find_include`. The source itself has no place.
class Reader {
 public:
  Reader(const IncludePlaces& source, std::vector<std::string>* looked)
      : source_(source),
        looked_(looked),
        places_(source.directories.size() + 2),
        left_(most_source.count - std::min<std::uint64_t>(source.text.size(), most_source.count)) {}

  std::vector<SourceText> run(const std::string& shown) {
    texts_.push_back({.shown = shown, .place = places_, .uses = uses_of(source_.text)});
    for (std::size_t i = 0; i < texts_.size(); ++i)
      for (std::size_t u = 0; u < texts_[i].uses.size(); ++u) {
        IncludeUse use = std::move(texts_[i].uses[u]);  // finding it makes `texts_` longer
        find(i, use);
        texts_[i].uses[u] = std::move(use);
      }
    return std::move(texts_);
  }

 private:
  struct Found {
    std::size_t text = 0;
    std::string why;
    bool nothing() const { return text == 0 && why.empty(); }
  };

  std::vector<IncludeUse> uses_of(std::string_view text) const {
    return source_.imports ? find_slang_uses(text) : find_uses(text);
  }

  void find(std::size_t includer, IncludeUse& use) {
    if (use.name.empty()) return void(use.why = "it has no name");
    Found found;
    const std::size_t place = texts_[includer].place;
    if (use.name.front() != '/') {  // absolute paths differ between machines
      if (!use.angled && place != places_) found = at(place, beside(texts_[includer].name, use.name));
      const std::string name = normal_path(use.name);
      for (std::size_t p = 0; p < places_ && found.nothing(); ++p) found = at(p, name);
    }
    use.text = found.text;
    use.why = found.nothing() ? searched(use) : std::move(found.why);
    std::replace(use.why.begin(), use.why.end(), '\n', ' ');  // a message of the compiler is one line
  }

  /// Returns the result of looking up a name at a place.
  const Found& at(std::size_t place, const std::string& name) {
    const auto [known, is_new] = found_.try_emplace({place, name});
    if (is_new) known->second = look(place, name);
    return known->second;
  }

  Found look(std::size_t place, const std::string& name) {
    if (place == 0) {
      for (const Include& include : source_.includes)
        if (normal_path(include.name) == name) return add(place, name, name, {}, include.text);
      return {};
    }
    if (place == places_ - 1) return ask(place, name);
    const std::string path = below(source_.directories[place - 1], name);
    if (looked_) looked_->push_back(path);
    auto text = read_text(path, most_source);
    if (!text) return {0, base::clause(text.error().sentence())};
    return *text ? add(place, name, path, path, std::move(**text)) : Found{};
  }

  Found ask(std::size_t place, const std::string& name) {
    if (!source_.find_include) return {};
    try {
      auto text = source_.find_include(name);
      if (!text) return {0, base::clause(text.error().sentence())};
      return *text ? add(place, name, name, {}, std::move(**text)) : Found{};
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& thrown) {
      return {0, base::text("the application's find_include throws: {}", thrown.what())};
    } catch (...) {
      return {0, "the application's find_include throws"};
    }
  }

  Found add(std::size_t place, const std::string& name, std::string shown, std::string path,
            std::string text) {
    if (const std::string why = not_text(text); !why.empty()) return {0, base::text("'{}' {}", shown, why)};
    if (text.size() > left_ || texts_.size() > most_texts)
      return {0, base::text("the source and its includes exceed {} or {} texts", to_string(most_source),
                            most_texts)};
    left_ -= text.size();
    drop_byte_order_mark(text);
    auto uses = uses_of(text);
    texts_.push_back({.shown = std::move(shown),
                      .name = name,
                      .path = std::move(path),
                      .text = std::move(text),
                      .place = place,
                      .uses = std::move(uses)});
    return {texts_.size() - 1, {}};
  }

  std::string searched(const IncludeUse& use) const {
    if (use.name.front() == '/') return "absolute names are not searched";
    std::string where;
    const auto append = [&](std::string_view more) { where.append(where.empty() ? "" : ", ").append(more); };
    if (!source_.includes.empty()) append("its includes");
    for (const std::string& directory : source_.directories)
      append(base::text("'{}'", directory.empty() ? "." : directory));
    if (source_.find_include) append("its find_include");
    if (where.empty()) return "the source names no place to search";
    return base::text("it does not exist (searched {})", where);
  }

  const IncludePlaces& source_;
  std::vector<std::string>* const looked_;
  const std::size_t places_;
  std::uint64_t left_;
  std::vector<SourceText> texts_;
  std::map<std::pair<std::size_t, std::string>, Found> found_;
};

}  // namespace

Result<void> check_includes(const std::vector<Include>& includes, const std::string& kernel) {
  std::set<std::string> names;
  for (const Include& include : includes) {
    std::string name = normal_path(include.name);
    if (name.empty())
      return Error(Errc::invalid_argument,
                   base::text("Include '{}' of kernel '{}' has no name.", include.name, kernel));
    if (!names.insert(std::move(name)).second)
      return Error(Errc::invalid_argument,
                   base::text("Kernel '{}' has include '{}' twice.", kernel, include.name));
  }
  return {};
}

std::vector<SourceText> read_includes(const IncludePlaces& places, const std::string& shown,
                                      std::vector<std::string>* looked) {
  return Reader(places, looked).run(shown);
}

std::string with_includes(std::string_view text, const std::vector<IncludeUse>& uses,
                          const std::function<std::string(const IncludeUse*)>& name) {
  constexpr std::string_view next = "_next", error = "error ";
  std::string result;
  std::size_t copied = 0;
  const auto replace = [&](std::size_t from, std::size_t to, std::string_view with) {
    result.append(text.substr(copied, from - copied)).append(with);
    // Keeps the number of lines of a directive.
    result.append(static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(from),
                                                      text.begin() + static_cast<std::ptrdiff_t>(to), '\n')),
                  '\n');
    copied = to;
  };
  for (std::size_t hash = text.find('#'); hash != text.npos;
       hash = text.find('#', std::max(hash + 1, copied))) {
    const std::size_t word = skip_spliced(text.substr(0, hash + most_gap), hash + 1);
    std::size_t at = skip_word(text, word, "include");
    if (at == text.npos) continue;
    const bool is_next = text.substr(at, next.size()) == next;
    if (is_next) at += next.size();
    at = skip_spliced(text.substr(0, at + most_gap), at);
    if (at == text.size()) continue;
    const bool named = !is_next && (text[at] == '"' || text[at] == '<');
    if (!named) {
      const std::size_t line = text.rfind('\n', hash) + 1;  // npos + 1 is 0
      const bool begins_line = text.substr(line, hash - line).find_first_not_of(" \t") == text.npos;
      if (at > word && begins_line && (is_next || is_identifier(text.substr(at, 1))))
        replace(word, at, std::string(name(nullptr)) + " ");
      continue;
    }
    std::size_t end = at + 1;
    std::string meant;
    while (end < text.size() && text[end] != '\n' && text[end] != (text[at] == '<' ? '>' : '"')) {
      if (const std::size_t splice = splice_at(text, end))
        end += splice;
      else
        meant.push_back(text[end++]);
    }
    const bool closed = end < text.size() && text[end] != '\n';
    const auto use = std::find_if(uses.begin(), uses.end(), [&](const IncludeUse& u) {
      return u.angled == (text[at] == '<') && u.name == meant;
    });
    if (use == uses.end()) continue;
    const std::string other = name(&*use);
    replace(other.starts_with(error) ? word : at, closed ? end + 1 : end, other);
  }
  return result.append(text.substr(copied));
}

Result<std::optional<std::string>> read_text(const std::string& path, Bytes at_most) {
  const auto invalid = [](std::string sentence) {
    return Error(Errc::invalid_argument, std::move(sentence));
  };
  if (path.find('\0') != path.npos) return invalid("The path of a file has a zero byte.");
  auto content = base::read_file(path, at_most);
  if (!content)
    return content.error() == Errc::out_of_memory ? invalid(content.error().sentence()) : content.error();
  if (!*content) return std::optional<std::string>();
  std::string text(reinterpret_cast<const char*>((*content)->data()), (*content)->size());
  if (const std::string why = not_text(text); !why.empty())
    return invalid(base::text("File '{}' {}.", path, why));
  drop_byte_order_mark(text);
  return std::optional(std::move(text));
}

}  // namespace wye::kernel
