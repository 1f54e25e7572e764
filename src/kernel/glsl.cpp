#include "kernel/glsl.hpp"

#include <algorithm>

#include "base/text.hpp"

#if WYE_WITH_GLSL
#include <glslang/build_info.h>

#include <mutex>
#include <shaderc/shaderc.hpp>
#endif

namespace wye {
inline namespace v0 {
namespace kernel {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t'; }

/// Where what follows a run of blanks, line ends and comments begins.
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

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

}  // namespace

bool is_identifier(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && word_at(name, 0).size() == name.size();
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

/// The name the compiler knows every source by: the one shown to people must not get into what it makes.
constexpr std::string_view source_name = "kernel.comp";
/// Errors of one compile that are told.
constexpr std::size_t most_errors = 20;

std::string shown_name(const Glsl& source, const std::string& kernel) {
  return source.file.empty() ? kernel + ".comp" : source.file;
}

Error refused(const std::string& kernel, std::string_view diagnostic) {
  return Error(Errc::compile_failed, base::text("Kernel '{}' does not compile: {}{}", kernel, diagnostic,
                                                !diagnostic.empty() && diagnostic.back() == '.' ? "" : "."));
}

/// "kernel.comp:4: error: '' : text" as "scale.comp:4: text"; empty for what is no error.
std::string diagnostic(std::string_view line, const std::string& shown) {
  constexpr std::string_view mark = ": error: ";
  const std::size_t found = line.find(mark);
  if (found == std::string_view::npos) return {};
  std::string_view place = line.substr(0, found), what = line.substr(found + mark.size());
  if (constexpr std::string_view nothing = "'' : "; what.starts_with(nothing))
    what.remove_prefix(nothing.size());
  while (!what.empty() && is_space(what.front())) what.remove_prefix(1);
  std::string result;
  if (place.starts_with(source_name)) {
    result = shown;
    place.remove_prefix(source_name.size());
  }
  return result.append(place).append(": ").append(what);
}

/// The compiler's messages as one error: the first is the sentence, the others are its context.
Error parse(std::string_view messages, const std::string& kernel, const std::string& shown) {
  std::vector<std::string> errors;
  for (std::size_t at = 0; at < messages.size();) {
    const std::size_t end = std::min(messages.find('\n', at), messages.size());
    if (std::string one = diagnostic(messages.substr(at, end - at), shown); !one.empty())
      errors.push_back(std::move(one));
    at = end + 1;
  }
  if (errors.empty()) return refused(kernel, base::text("{}: {}", shown, messages));
  Error error = refused(kernel, errors.front());
  for (std::size_t i = 1; i < errors.size() && i < most_errors; ++i) error = error.with_context(errors[i]);
  if (errors.size() > most_errors)
    error = error.with_context(base::text("and {} more errors", errors.size() - most_errors));
  return error;
}

/// Answers every #include with a message that the compiler puts into its error.
class NoIncludes final : public shaderc::CompileOptions::IncluderInterface {
 public:
  shaderc_include_result* GetInclude(const char*, shaderc_include_type, const char*, std::size_t) override {
    static constexpr std::string_view message =
        "a kernel source is one piece of text, and nothing can be included in it";
    answer_ = {"", 0, message.data(), message.size(), nullptr};
    return &answer_;
  }
  void ReleaseInclude(shaderc_include_result*) override {}

 private:
  shaderc_include_result answer_{};
};

class Shaderc final : public GlslCompiler {
 public:
  bool valid() const { return compiler_.IsValid(); }

  Result<std::vector<std::uint32_t>> compile(const Glsl& source, const std::string& kernel) const override {
    const std::string shown = shown_name(source, kernel);
    // Without a version that Vulkan knows, the compiler writes the text of its built-in functions to standard
    // output.
    const GlslOutline seen = outline(source.text, source.entry);
    if (seen.version != 450 && seen.version != 460)
      return refused(kernel, base::text("{}:1: the source must begin with #version 450 or 460", shown));
    if (!seen.profile.empty() && seen.profile != "core")
      return refused(kernel, base::text("{}:1: the profile '{}' is not core", shown, seen.profile));
    if (source.entry != "main" && !seen.has_entry)
      return refused(kernel, base::text("{}: there is no function '{}'", shown, source.entry));

    shaderc::CompileOptions options;
    options.SetTargetEnvironment(shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
    options.SetTargetSpirv(shaderc_spirv_version_1_5);
    options.SetForcedVersionProfile(seen.version, shaderc_profile_none);
    options.SetSuppressWarnings();
    options.SetIncluder(std::make_unique<NoIncludes>());
    for (const Macro& macro : source.macros) options.AddMacroDefinition(macro.name, macro.value);
    // GLSL has one entry point, main; a function of another name becomes it by being called so.
    if (source.entry != "main") options.AddMacroDefinition(source.entry, "main");

    const auto result = compiler_.CompileGlslToSpv(
        source.text.data(), source.text.size(), shaderc_compute_shader, source_name.data(), "main", options);
    if (result.GetCompilationStatus() != shaderc_compilation_status_success)
      return parse(result.GetErrorMessage(), kernel, shown);
    return std::vector<std::uint32_t>(result.begin(), result.end());
  }

 private:
  shaderc::Compiler compiler_;
};

}  // namespace

std::shared_ptr<const GlslCompiler> GlslCompiler::share() {
  static std::mutex mutex;
  static std::weak_ptr<const Shaderc> shared;
  const std::lock_guard lock(mutex);
  if (auto there = shared.lock()) return there;
  auto made = std::make_shared<const Shaderc>();
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

#else

std::shared_ptr<const GlslCompiler> GlslCompiler::share() { return nullptr; }
std::string GlslCompiler::build_id() { return {}; }

#endif

}  // namespace kernel
}  // namespace v0
}  // namespace wye
