#include "kernel/compilers/glsl.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/float_environment.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "kernel/compilers/diagnostics.hpp"
#include "kernel/compilers/nesting.hpp"

#if WYE_WITH_GLSL
#include <glslang/build_info.h>

#include <mutex>
#include <shaderc/shaderc.hpp>
#endif

namespace wye::inline v0::kernel {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

}  // namespace

std::size_t skip_blank(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const char c = text[at];
    if (is_space(c) || c == '\n' || c == '\r' || c == '\v' || c == '\f') {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else {
      break;
    }
  }
  return at;
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

bool is_identifier(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && word_at(name, 0).size() == name.size();
}

std::string_view macro_identifier(std::string_view name) {
  const std::size_t open = name.find('(');
  const std::string_view identifier = name.substr(0, open);
  if (!is_identifier(identifier)) return {};
  if (open == name.npos) return identifier;
  if (name.back() != ')') return {};
  std::string_view rest = name.substr(open + 1, name.size() - open - 2);
  const auto blank = [](std::string_view text) { return text.find_first_not_of(" \t") == text.npos; };
  if (blank(rest)) return identifier;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != rest.npos;
    std::string_view parameter = rest.substr(0, comma);
    while (!parameter.empty() && is_space(parameter.front())) parameter.remove_prefix(1);
    while (!parameter.empty() && is_space(parameter.back())) parameter.remove_suffix(1);
    if (!is_identifier(parameter) && (more || parameter != "...")) return {};
    if (more) rest.remove_prefix(comma + 1);
  }
  return identifier;
}

GlslOutline outline(std::string_view text, std::string_view entry) {
  GlslOutline result;
  std::size_t at = skip_blank(text, 0);
  const auto skip_space = [&] {
    while (at < text.size() && is_space(text[at])) ++at;
  };
  if (at < text.size() && text[at] == '#') {
    ++at;
    skip_space();
    if (const std::string_view directive = word_at(text, at); directive == "version") {
      at += directive.size();
      skip_space();
      const std::string_view number = word_at(text, at);
      at += number.size();
      skip_space();
      result.profile = word_at(text, at);
      for (char c : number.substr(0, 4)) {
        if (!is_digit(c)) return {};
        result.version = result.version * 10 + (c - '0');
      }
    }
  }
  for (at = skip_blank(text, 0); at < text.size(); at = skip_blank(text, at)) {
    const std::string_view word = word_at(text, at);
    if (word == entry) result.has_entry = true;
    at += std::max<std::size_t>(word.size(), 1);
  }
  return result;
}

#if WYE_WITH_GLSL

namespace {

/// The names of a source and its includes for the compiler. The names shown in messages differ
/// between machines and must not become part of the code.
constexpr std::string_view source_name = "kernel.comp";
constexpr std::string_view include_name = "kernel.include.";
/// The line of the generated function that calls an entry point other than main. Greater than the
/// lines of any source.
constexpr std::uint32_t generated_line = 999'999'000;

/// Returns the column of the quoted word at the beginning of a message, because the compiler
/// reports no columns. Returns 0 if the line does not have the word, or more than once and not for
/// the same error, or if the source has `#line`.
std::uint32_t column_of(const Diagnostic& diagnostic, std::string_view text) {
  if (diagnostic.line == 0 || text.find("#line") != text.npos || !diagnostic.text.starts_with("'")) return 0;
  const std::string_view word = word_at(diagnostic.text, 1);
  if (!is_identifier(word) || std::string_view(diagnostic.text).substr(1 + word.size(), 1) != "'") return 0;
  for (std::uint32_t line = 1; line < diagnostic.line; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return 0;
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  std::uint32_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view here = word_at(text, at);
    if (here == word) {
      if (column != 0) return diagnostic.text.ends_with("undeclared identifier") ? column : 0;
      column = static_cast<std::uint32_t>(at + 1);
    }
    at += std::max<std::size_t>(here.size(), 1);
  }
  return column;
}

/// Returns the extension that declares a type; empty if there is none.
std::string_view extension_of(std::string_view type) {
  struct Types {
    std::string_view extension;
    std::array<std::string_view, 4> beginnings;
  };
  constexpr std::array<Types, 5> types{{
      {"GL_EXT_shader_explicit_arithmetic_types_float16", {"float16_t", "f16vec", "f16mat"}},
      {"GL_EXT_shader_explicit_arithmetic_types_int8", {"int8_t", "uint8_t", "i8vec", "u8vec"}},
      {"GL_EXT_shader_explicit_arithmetic_types_int16", {"int16_t", "uint16_t", "i16vec", "u16vec"}},
      {"GL_EXT_shader_explicit_arithmetic_types_int64", {"int64_t", "uint64_t", "i64vec", "u64vec"}},
      {"GL_KHR_cooperative_matrix", {"coopmat"}},
  }};
  for (const Types& one : types)
    for (const std::string_view beginning : one.beginnings)
      if (!beginning.empty() && type.starts_with(beginning)) return one.extension;
  return {};
}

/// Returns how to request the extension that a message finds missing; empty for other messages.
std::string extension_hint(std::string_view message) {
  constexpr std::string_view missing = "required extension not requested: ";
  constexpr std::string_view undeclared = "' : undeclared identifier";
  std::string_view extension;
  if (const std::size_t found = message.find(missing); found != message.npos) {
    const std::string_view rest = message.substr(found + missing.size());
    if (is_identifier(rest)) extension = rest;
  } else if (message.starts_with('\'') && message.ends_with(undeclared)) {
    extension = extension_of(word_at(message, 1));
  }
  return extension.empty() ? std::string() : base::text(" (needs '#extension {} : require')", extension);
}

/// Parses "kernel.comp:4: error: '' : text"; returns nothing for other lines.
std::optional<Diagnostic> parse_line(std::string_view line, std::string_view source,
                                     const std::vector<SourceText>& texts) {
  Diagnostic diagnostic;
  std::size_t length = 0;
  const auto find = [&](std::string_view mark, Diagnostic::Severity severity) {
    length = mark.size();
    diagnostic.severity = severity;
    return line.find(mark);
  };
  std::size_t found = find(": error: ", Diagnostic::Severity::error);
  if (found == line.npos) found = find(": warning: ", Diagnostic::Severity::warning);
  if (found == line.npos) return std::nullopt;

  std::string_view place = line.substr(0, found), what = line.substr(found + length);
  if (const std::size_t colon = place.rfind(':'); colon != place.npos)
    if (const auto value = small_number(place.substr(colon + 1))) {
      diagnostic.line = *value;
      place = place.substr(0, colon);
    }
  diagnostic.file = place;
  std::optional<std::size_t> text;
  if (place == source_name) {
    text = 0;
  } else if (place.starts_with(include_name)) {
    const auto index = small_number(place.substr(include_name.size()));
    if (index && *index < texts.size()) text = *index;
  }
  if (text) diagnostic.file = texts[*text].shown;

  constexpr std::string_view nothing = "'' : ", include = "'#include' : ", header = " for header name: ";
  if (what.starts_with(nothing)) what.remove_prefix(nothing.size());
  if (what.starts_with(include) && what.find(header) != what.npos) {  // a message of `Includer`
    what.remove_prefix(include.size());
    what = what.substr(0, what.rfind(header));
  }
  diagnostic.text = trimmed(what);
  if (text)
    diagnostic.column = column_of(diagnostic, *text == 0 ? source : std::string_view(texts[*text].text));
  diagnostic.text += extension_hint(diagnostic.text);
  return diagnostic;
}

std::vector<Diagnostic> parse(std::string_view messages, std::string_view source,
                              const std::vector<SourceText>& texts, Diagnostic::Severity severity) {
  std::vector<Diagnostic> list;
  for (std::size_t at = 0; at < messages.size();) {
    const std::size_t end = std::min(messages.find('\n', at), messages.size());
    auto diagnostic = parse_line(messages.substr(at, end - at), source, texts);
    if (diagnostic && diagnostic->severity == severity) list.push_back(std::move(*diagnostic));
    at = end + 1;
  }
  return list;
}

/// Makes one error of the compiler's messages.
Error failure(std::string_view messages, const Glsl& source, const std::vector<SourceText>& texts,
              const std::string& kernel, const std::string& stop_reason) {
  std::vector<Diagnostic> errors = parse(messages, source.text, texts, Diagnostic::Severity::error);
  for (Diagnostic& diagnostic : errors)
    if (diagnostic.line >= generated_line)
      diagnostic.line = 0, diagnostic.column = 0,
      diagnostic.text = base::text("there is no function '{}' without parameters", source.entry);
  if (!stop_reason.empty()) {
    const auto cause = std::find_if(errors.begin(), errors.end(), [&](const Diagnostic& diagnostic) {
      return diagnostic.text == stop_reason;
    });
    if (cause != errors.end()) errors = {Diagnostic(*cause)};
  }
  if (errors.empty()) errors.push_back({.file = texts.front().shown, .text = std::string(messages)});
  return compile_error(kernel, std::move(errors));
}

/// Gives the compiler the texts that were read, and stops infinite recursion of includes.
class Includer final : public shaderc::CompileOptions::IncluderInterface {
 public:
  explicit Includer(const std::vector<SourceText>& texts) : texts_(texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) names_.push_back(base::text("{}{}", include_name, i));
  }

  shaderc_include_result* GetInclude(const char* requested, shaderc_include_type type, const char* requesting,
                                     std::size_t depth) override {
    const bool angled = type == shaderc_include_type_standard;
    auto included = std::make_unique<IncludeResult>();
    if (angled) included->why = std::move(refused_);  // the compiler requests a refused "x" again as <x>
    refused_.clear();
    // After an error that stops the compile, all includes are empty.
    const std::size_t text = included->why.empty() && stop_reason_.empty()
                                 ? find(requested, angled, requesting, included->why)
                                 : 0;
    if (text != 0) {
      chain_.resize(std::min(chain_.size(), depth - 1));
      chain_.push_back(text);
      bytes_ += texts_[text].text.size();
      if (depth > most_depth) {
        included->why = too_deep();
      } else if (++inclusions_ > most_inclusions || bytes_ > most_source.count) {
        included->why = base::text("the source includes more than {} or more than {} texts",
                                   to_string(most_source), most_inclusions);
      }
      stop_reason_ = included->why;
    }
    if (!angled) refused_ = included->why;
    const std::string_view name = included->why.empty() ? std::string_view(names_[text]) : "";
    const std::string_view content =
        !included->why.empty() ? included->why : std::string_view(texts_[text].text);
    included->result = {name.data(), name.size(), content.data(), content.size(), included.get()};
    return &included.release()->result;
  }
  /// Returns the reason why includes were stopped; empty if they were not. Other errors may result
  /// from the missing texts.
  const std::string& stop_reason() const { return stop_reason_; }

  void ReleaseInclude(shaderc_include_result* result) override {
    delete static_cast<IncludeResult*>(result->user_data);
  }

 private:
  struct IncludeResult {
    shaderc_include_result result{};
    std::string why;  ///< the reason if nothing is included
  };

  std::size_t find(std::string_view name, bool angled, std::string_view from, std::string& why) const {
    std::size_t includer = 0;
    if (from.starts_with(include_name))
      includer = small_number(from.substr(include_name.size())).value_or(0) % texts_.size();
    const auto& uses = texts_[includer].uses;
    const auto use = std::find_if(uses.begin(), uses.end(),
                                  [&](const IncludeUse& u) { return u.name == name && u.angled == angled; });
    if (use != uses.end() && use->text != 0) return use->text;
    // Must be an error: the key does not contain the text of an unknown include.
    why = base::text("'{}' cannot be included: {}", name,
                     use == uses.end() ? "the form of this #include is not supported" : use->why);
    return 0;
  }

  /// Describes an include cycle or too deep nesting. Conditions may end a cycle, so only depth is
  /// limited.
  std::string too_deep() const {
    const auto back = chain_.rbegin();
    const auto again = std::find(back + 1, chain_.rend(), *back);
    if (again == chain_.rend()) return base::text("includes are nested deeper than {}", most_depth);
    std::string cycle;
    for (auto text = again.base() - 1; text != chain_.end(); ++text)
      cycle.append(cycle.empty() ? "'" : " includes '").append(texts_[*text].shown).append("'");
    return base::text("includes form a cycle: {}", cycle);
  }

  const std::vector<SourceText>& texts_;
  std::vector<std::string> names_;
  std::vector<std::size_t> chain_;
  std::size_t inclusions_ = 0;
  std::uint64_t bytes_ = 0;
  std::string refused_;  ///< why the last request of the form "x" was refused
  std::string stop_reason_;
};

class Shaderc final : public GlslCompiler {
 public:
  bool valid() const { return compiler_.IsValid(); }

  using GlslCompiler::compile;
  Result<std::vector<std::uint32_t>> compile(const Glsl& source, const std::vector<SourceText>& texts,
                                             const std::string& kernel,
                                             std::vector<Diagnostic>* warnings) const override {
    const base::DefaultFloatEnvironment environment;
    const auto refuse = [&](std::uint32_t line, std::string what) {
      return compile_error(kernel, {{.file = texts.front().shown, .line = line, .text = std::move(what)}});
    };
    // Refuses other versions first: for them the compiler writes its built-in functions to standard
    // output.
    GlslOutline seen = outline(source.text, source.entry);
    if (seen.version != 450 && seen.version != 460)
      return refuse(1, "the source must begin with #version 450 or 460");
    if (!seen.profile.empty() && seen.profile != "core")
      return refuse(1, base::text("the profile '{}' is not core", seen.profile));
    for (std::size_t i = 1; i < texts.size() && !seen.has_entry; ++i)
      seen.has_entry = outline(texts[i].text, source.entry).has_entry;
    if (source.entry != "main" && !seen.has_entry)
      return refuse(0, base::text("there is no function '{}'", source.entry));

    shaderc::CompileOptions options;
    options.SetTargetEnvironment(shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
    options.SetTargetSpirv(shaderc_spirv_version_1_5);
    options.SetForcedVersionProfile(seen.version, shaderc_profile_none);
    if (!warnings) options.SetSuppressWarnings();
    auto includer = std::make_unique<Includer>(texts);
    const Includer& used_includer = *includer;
    options.SetIncluder(std::move(includer));
    for (const Macro& macro : source.macros) options.AddMacroDefinition(macro.name, macro.value);
    // The entry point of GLSL is always main. Another entry point is called by a generated main;
    // the main of the source is renamed.
    std::string extended;
    if (source.entry != "main") {
      options.AddMacroDefinition("main", "wye_main_of_source");
      extended = base::text("{}\n\n#undef main\n#line {}\nvoid main() {{ {}(); }}\n", source.text,
                            generated_line, source.entry);
    }
    const std::string& text = source.entry == "main" ? source.text : extended;

    if (auto nesting = check_nesting(source.text, texts, kernel); !nesting) return std::move(nesting).error();
    return run_compiler([&]() -> Result<std::vector<std::uint32_t>> {
      const auto result = compiler_.CompileGlslToSpv(text.data(), text.size(), shaderc_compute_shader,
                                                     source_name.data(), "main", options);
      if (result.GetCompilationStatus() != shaderc_compilation_status_success)
        return failure(result.GetErrorMessage(), source, texts, kernel, used_includer.stop_reason());
      if (warnings)
        *warnings = parse(result.GetErrorMessage(), source.text, texts, Diagnostic::Severity::warning);
      return std::vector<std::uint32_t>(result.begin(), result.end());
    });
  }

 private:
  shaderc::Compiler compiler_;
};

struct SharedShaderc {
  std::mutex mutex;
  std::weak_ptr<const Shaderc> compiler;
};
constinit base::PerProcess<SharedShaderc> shared_shaderc;

}  // namespace

std::shared_ptr<const GlslCompiler> GlslCompiler::share() {
  auto& [mutex, shared] = shared_shaderc.get();
  const std::lock_guard lock(mutex);
  if (auto there = shared.lock()) return there;
  auto made = base::make_own<const Shaderc>();
  if (!made->valid()) return nullptr;
  shared = made;
  return made;
}

std::string GlslCompiler::build_id() {
  unsigned version = 0, revision = 0;
  shaderc_get_spv_version(&version, &revision);
  return base::text("shaderc, glslang {}.{}.{}{}, SPIR-V {:x}.{}, vulkan1.2, spv1.5, -O0",
                    GLSLANG_VERSION_MAJOR, GLSLANG_VERSION_MINOR, GLSLANG_VERSION_PATCH,
                    GLSLANG_VERSION_FLAVOR, version, revision);
}

// glslang 13 generates other enumerants than SPV_KHR_cooperative_matrix has.
bool GlslCompiler::knows_cooperative_matrix() noexcept { return GLSLANG_VERSION_MAJOR >= 14; }

#else

std::shared_ptr<const GlslCompiler> GlslCompiler::share() { return nullptr; }
std::string GlslCompiler::build_id() { return {}; }
bool GlslCompiler::knows_cooperative_matrix() noexcept { return false; }

#endif

}  // namespace wye::kernel
