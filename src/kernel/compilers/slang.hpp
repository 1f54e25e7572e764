#pragma once
/// Compiles Slang to SPIR-V and to CUDA C++.
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/compilers/includes.hpp"

namespace wye::inline v0::kernel {

/// Slang's compiler, libslang-compiler. It is opened on first use (2 ms) and never closed. Its
/// state (165 MiB, created in 200 ms by the first compile) ends with its last user. It is not
/// reentrant: compiles wait for each other.
/// Threads: thread-safe.
class SlangCompiler {
 public:
  enum class Target : std::uint8_t { spirv, cuda, module };

  /// The result of a compile.
  struct Made {
    std::string code;
    std::string entry = {};
    Extent3 workgroup{1};
    std::string prelude = {};  ///< included by CUDA C++ as `cuda_prelude`
  };
  static constexpr char cuda_prelude[] = "slang-cuda-prelude.h";

  /// Returns the compiler of the process, which may be unable to compile.
  static std::shared_ptr<const SlangCompiler> share();

  virtual ~SlangCompiler() = default;
  /// Returns the release, the options and the target, which are part of every key.
  /// Errors: unavailable (no library, or too old a library), unsupported (a build of wye without
  ///         Slang).
  virtual Result<std::string> build_id(Target target) const = 0;
  /// Compiles to SPIR-V 1.5 with an entry point named "main". Only `texts`, the result of
  /// `read_imports`, can be included.
  /// Errors: those of `build_id`; compile_failed, "scale.slang:4:7: undefined identifier 'x'";
  ///         further errors are its context, and all are its diagnostics.
  Result<std::vector<std::uint32_t>> spirv(const Slang& source, const std::vector<SourceText>& texts,
                                           const std::string& kernel,
                                           std::vector<Diagnostic>* warnings = nullptr) const;
  /// Compiles to CUDA C++, complete except for the toolkit's headers in `cuda_texts`. Blocks have
  /// `numthreads` threads.
  Result<CudaCpp> cuda(const Slang& source, const std::vector<SourceText>& texts, const std::string& kernel,
                       std::vector<Diagnostic>* warnings = nullptr) const;

  /// Compiles to a module for `Slang::module`.
  Result<std::vector<std::byte>> module(const Slang& source, const std::vector<SourceText>& texts,
                                        const std::string& kernel) const;

  /// Returns a text that includes the headers of the CUDA Toolkit that the result of `cuda` may
  /// include.
  static std::vector<SourceText> cuda_texts();

  /// Returns the name of a source in messages.
  static std::string shown_name(const Slang& source, const std::string& kernel) {
    return source.file.empty() ? kernel + ".slang" : source.file;
  }

 private:
  virtual Result<Made> compile(const Slang& source, const std::vector<SourceText>& texts,
                               const std::string& kernel, Target target,
                               std::vector<Diagnostic>* warnings) const = 0;
};

}  // namespace wye::kernel
