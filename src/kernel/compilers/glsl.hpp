#pragma once
/// Compiles GLSL to SPIR-V.
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/compilers/includes.hpp"

namespace wye::inline v0::kernel {

/// The GLSL compiler. Its first compile takes about 70 ms, because it reads the built-in functions
/// of the language. Later compiles take 0.5 ms or more. All users therefore share one compiler,
/// which ends with its last user. Only `warm_compilers` warms it: an application that starts again
/// compiles nothing and would pay for it each time. A `Prewarm`, a build job and a build under a
/// deadline pay on a thread of wye.
/// Threads: thread-safe.
class GlslCompiler {
 public:
  /// Returns the compiler of the process; null if this build has none.
  static std::shared_ptr<const GlslCompiler> share();
  /// Returns the compiler's build and options, which are part of every key. Empty if there is no
  /// compiler.
  static std::string build_id();
  /// Returns whether the compiler of this build knows GL_KHR_cooperative_matrix.
  static bool knows_cooperative_matrix() noexcept;

  virtual ~GlslCompiler() = default;
  /// Compiles to SPIR-V 1.5 for Vulkan 1.2, without optimization: drivers optimize anyway, and
  /// better (lavapipe is slower on optimized code). The entry point is always named "main". Only
  /// `texts`, the result of `read_includes`, can be included.
  /// Errors: compile_failed, "scale.comp:4: 'foo' : undeclared identifier."; further errors are its
  ///         context, and all are its diagnostics.
  virtual Result<std::vector<std::uint32_t>> compile(const Glsl& source, const std::vector<SourceText>& texts,
                                                     const std::string& kernel,
                                                     std::vector<Diagnostic>* warnings = nullptr) const = 0;
  Result<std::vector<std::uint32_t>> compile(const Glsl& source, const std::string& kernel) const {
    return compile(source, read_includes(source, shown_name(source, kernel)), kernel);
  }

  /// Returns the name of a source in messages.
  static std::string shown_name(const Glsl& source, const std::string& kernel) {
    return source.file.empty() ? kernel + ".comp" : source.file;
  }
};

/// The version of a shader, and whether it has a given function. Comments are ignored.
struct GlslOutline {
  int version = 0;      ///< 0 if it does not begin with #version
  std::string profile;  ///< "core", or empty
  bool has_entry = false;
};
GlslOutline outline(std::string_view text, std::string_view entry);

/// Returns the first place after blanks, line ends and comments.
std::size_t skip_blank(std::string_view text, std::size_t at);

/// Returns whether `c` may stand in an identifier.
bool is_word(char c);
/// Returns whether `name` is an identifier of GLSL and C.
bool is_identifier(std::string_view name);
/// Returns the identifier of a macro's name: "mad" for "mad" and for "mad(a, b, ...)"; empty for
/// other names.
std::string_view macro_identifier(std::string_view name);

}  // namespace wye::kernel
