#pragma once
/// From GLSL to SPIR-V.
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/compilers/includes.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// The GLSL compiler. The first compile after it came into being costs some 70 ms (it reads the language's
/// built-in functions), later ones 0.5 ms and more; so all users share one, and it ends with its
/// last user. It is not warmed unless it is asked for (`warm_compilers`): an application that starts again compiles nothing, and
/// would pay for it each time. A `Prewarm`, a build that is a job and one under a deadline take that time on a thread of wye's.
/// Threads: thread-safe.
class GlslCompiler {
 public:
  /// The process's compiler; null if this build has none.
  static std::shared_ptr<const GlslCompiler> share();
  /// Names the compiler build and the options it is used with: part of every key. Empty if there is none.
  static std::string build_id();

  virtual ~GlslCompiler() = default;
  /// SPIR-V 1.5 for Vulkan 1.2, not optimized: drivers do that again, and better (lavapipe is slower on
  /// optimized code). Its entry point is named "main" whatever `source.entry` says. Nothing but `texts`, what
  /// `read_includes` made of `source`, can be included.
  /// Errors: compile_failed, "scale.comp:4: 'foo' : undeclared identifier."; what else is wrong is its
  ///         context, all of it its diagnostics.
  virtual Result<std::vector<std::uint32_t>> compile(const Glsl& source, const std::vector<SourceText>& texts,
                                                     const std::string& kernel,
                                                     std::vector<Diagnostic>* warnings = nullptr) const = 0;
  Result<std::vector<std::uint32_t>> compile(const Glsl& source, const std::string& kernel) const {
    return compile(source, read_includes(source, shown_name(source, kernel)), kernel);
  }

  /// The name of a source in messages.
  static std::string shown_name(const Glsl& source, const std::string& kernel) {
    return source.file.empty() ? kernel + ".comp" : source.file;
  }
};

/// Finds the version of a shader and whether it has a function of some name; comments are not looked
/// at.
struct GlslOutline {
  int version = 0;      ///< 0 if it does not begin with #version
  std::string profile;  ///< "core", or empty
  bool has_entry = false;
};
GlslOutline outline(std::string_view text, std::string_view entry);

/// Returns the first place after blanks, line ends and comments.
std::size_t skip_blank(std::string_view text, std::size_t at);

/// Whether `c` may stand in an identifier.
bool is_word(char c);
/// Whether `name` is an identifier of GLSL and C.
bool is_identifier(std::string_view name);
/// The identifier of a macro's name: "mad" of "mad" and of "mad(a, b, ...)"; empty if the name is neither.
std::string_view macro_identifier(std::string_view name);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
