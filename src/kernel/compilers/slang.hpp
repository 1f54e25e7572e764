#pragma once
/// From Slang to SPIR-V, and to CUDA C++.
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/compilers/includes.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// Slang's compiler, libslang-compiler, opened when it is first needed (2 ms) and never closed. What it keeps
/// between compiles (165 MiB, made in 200 ms by the first) ends with its last user. Not reentrant: compiles wait
/// for each other.
/// Threads: thread-safe.
class SlangCompiler {
 public:
  enum class Target : std::uint8_t { spirv, cuda, module };

  /// The target of a compile.
  struct Made {
    std::string code;
    std::string entry = {};
    Extent3 workgroup{1};
    std::string prelude = {};  ///< included by CUDA C++ as `cuda_prelude`
  };
  static constexpr char cuda_prelude[] = "slang-cuda-prelude.h";

  /// The process's compiler; it may not be able to compile.
  static std::shared_ptr<const SlangCompiler> share();

  virtual ~SlangCompiler() = default;
  /// Names the release, the options it is used with and the target: part of every key.
  /// Errors: unavailable (no library, one that is too old), unsupported (a build of wye without Slang).
  virtual Result<std::string> build_id(Target target) const = 0;
  /// SPIR-V 1.5, whose entry point is named "main". Nothing but `texts`, what `read_imports` made of `source`, can
  /// be included.
  /// Errors: those of `build_id`; compile_failed, "scale.slang:4:7: undefined identifier 'x'"; what else is wrong
  ///         is its context, all of it its diagnostics.
  Result<std::vector<std::uint32_t>> spirv(const Slang& source, const std::vector<SourceText>& texts,
                                           const std::string& kernel,
                                           std::vector<Diagnostic>* warnings = nullptr) const;
  /// The same as CUDA C++, with all it needs but the toolkit's headers of `cuda_texts`. It is launched in blocks of
  /// `numthreads`.
  Result<CudaCpp> cuda(const Slang& source, const std::vector<SourceText>& texts, const std::string& kernel,
                       std::vector<Diagnostic>* warnings = nullptr) const;

  /// The same as a module, which `Slang::module` takes.
  Result<std::vector<std::byte>> module(const Slang& source, const std::vector<SourceText>& texts,
                                        const std::string& kernel) const;

  /// Returns a text that includes the headers of the CUDA Toolkit that the result of `cuda` may include.
  static std::vector<SourceText> cuda_texts();

  /// The name of a source in messages.
  static std::string shown_name(const Slang& source, const std::string& kernel) {
    return source.file.empty() ? kernel + ".slang" : source.file;
  }

 private:
  virtual Result<Made> compile(const Slang& source, const std::vector<SourceText>& texts,
                               const std::string& kernel, Target target,
                               std::vector<Diagnostic>* warnings) const = 0;
};

}  // namespace kernel
}  // namespace v0
}  // namespace wye
