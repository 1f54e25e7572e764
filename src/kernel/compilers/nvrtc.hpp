#pragma once
/// From CUDA C++ to cubins and PTX.
#include <wye/base/result.hpp>
#include <wye/kernel/source.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "kernel/compilers/includes.hpp"
#include "kernel/reflect/cuda_code.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// A header of the CUDA Toolkit, with all that it includes.
struct ToolkitHeader {
  std::vector<SourceText> texts;  ///< the first includes the source and no other text
  Digest digest;
};
using ToolkitHeaders = std::map<std::string, std::shared_ptr<const ToolkitHeader>>;

/// The target of a compile, "sm_90" (machine code) or "compute_90" (PTX).
struct CudaTarget {
  Architecture architecture;
  bool ptx = false;
  friend bool operator==(const CudaTarget&, const CudaTarget&) = default;
};
std::string to_string(const CudaTarget& target);
std::optional<CudaTarget> parse_target(std::string_view name);

/// The CUDA C++ compiler, NVRTC, which is opened when it is first needed: that, and to learn which build it
/// is, costs some 25 ms. All users share it, and it ends with the last one.
/// Threads: thread-safe.
class CudaCompiler {
 public:
  /// The process's compiler.
  /// Errors: unsupported (a build without it), unavailable (it cannot be opened: the names that were tried, each with the reason).
  static Result<std::shared_ptr<const CudaCompiler>> share();
  /// Another compiler, of the file `nvrtc`, for the caller alone.
  /// Errors: as `share`.
  static Result<std::shared_ptr<const CudaCompiler>> open(const std::string& nvrtc);
  /// Keeps the compiler alive after its first use, as long as the result lives. Each time that it is opened
  /// and closed again it leaves 71 KiB behind (NVRTC 13.0: the memory its libstdc++ keeps for exceptions).
  static std::shared_ptr<const void> keep();

  virtual ~CudaCompiler() = default;
  /// Names the compiler's build and the options it is used with: part of every key.
  virtual const std::string& build_id() const noexcept = 0;
  /// "NVRTC 13.0.88", for people.
  virtual const std::string& name() const noexcept = 0;
  /// The CUDA it is of, as drivers number theirs: 13000.
  virtual unsigned version() const noexcept = 0;
  /// The numbers of the architectures it can make code for, in order.
  virtual std::span<const unsigned> architectures() const noexcept = 0;
  /// Returns the headers of its toolkit that `texts` name and do not find elsewhere, by those names.
  virtual ToolkitHeaders headers(std::span<const SourceText> texts) const = 0;
  /// The code, of PTX with a zero at its end. Nothing but `texts` and `headers` can be included.
  /// Errors: compile_failed, "scale.cu:4: identifier "foo" is undefined."; other errors are its context,
  ///         all of it its diagnostics. unsupported: it does not know the architecture.
  /// Cost:   20 ms and more.
  virtual Result<std::vector<std::byte>> compile(const CudaCpp& source, const std::vector<SourceText>& texts,
                                                 const ToolkitHeaders& headers, const std::string& kernel,
                                                 const CudaTarget& target,
                                                 std::vector<Diagnostic>* warnings = nullptr) const = 0;

  bool knows(Architecture architecture) const noexcept;
  /// The newest target whose PTX the driver of `device` can take.
  std::optional<CudaTarget> newest_ptx(Architecture device) const noexcept;

  /// The name of a source in messages.
  static std::string shown_name(const CudaCpp& source, const std::string& kernel) {
    return source.file.empty() ? kernel + ".cu" : source.file;
  }
};

}  // namespace kernel
}  // namespace v0
}  // namespace wye
