#pragma once
/// Compiles CUDA C++ to cubins and PTX.
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

namespace wye::inline v0::kernel {

/// A header of the CUDA Toolkit, with all its includes.
struct ToolkitHeader {
  std::vector<SourceText> texts;  ///< the first text only includes the header
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

/// The CUDA C++ compiler, NVRTC. It is opened on first use, which takes about 25 ms with the query
/// of its build. All users share one compiler, which ends with its last user.
/// Threads: thread-safe.
class CudaCompiler {
 public:
  /// Returns the compiler of the process.
  /// Errors: unsupported (a build without it), unavailable (it cannot be opened; with each name
  ///         tried, and the reason).
  static Result<std::shared_ptr<const CudaCompiler>> share();
  /// Opens a separate compiler from the file `nvrtc`, for the caller alone.
  /// Errors: as `share`.
  static Result<std::shared_ptr<const CudaCompiler>> open(const std::string& nvrtc);
  /// Keeps the compiler alive from its first use, as long as the result lives. Each cycle of
  /// opening and closing leaks 71 KiB (NVRTC 13.0: memory that its libstdc++ reserves for
  /// exceptions).
  static std::shared_ptr<const void> keep();

  virtual ~CudaCompiler() = default;
  /// Returns the compiler's build and options, which are part of every key.
  virtual const std::string& build_id() const noexcept = 0;
  /// Returns its name for messages: "NVRTC 13.0.88".
  virtual const std::string& name() const noexcept = 0;
  /// Returns its CUDA version in the numbering of drivers: 13000.
  virtual unsigned version() const noexcept = 0;
  /// Returns the numbers of the architectures that it supports, in ascending order.
  virtual std::span<const unsigned> architectures() const noexcept = 0;
  /// Returns the headers of its toolkit that `texts` include and do not find elsewhere, by name.
  virtual ToolkitHeaders headers(std::span<const SourceText> texts) const = 0;
  /// Compiles to machine code, or to PTX with a terminating zero. Only `texts` and `headers` can be
  /// included.
  /// Errors: compile_failed, "scale.cu:4: identifier "foo" is undefined."; further errors are its
  ///         context, and all are its diagnostics. unsupported (it does not know the architecture).
  /// Cost:   at least 20 ms.
  virtual Result<std::vector<std::byte>> compile(const CudaCpp& source, const std::vector<SourceText>& texts,
                                                 const ToolkitHeaders& headers, const std::string& kernel,
                                                 const CudaTarget& target,
                                                 std::vector<Diagnostic>* warnings = nullptr) const = 0;

  bool knows(Architecture architecture) const noexcept;
  /// Returns the newest target whose PTX the driver of `device` accepts.
  std::optional<CudaTarget> newest_ptx(Architecture device) const noexcept;

  /// Returns the name of a source in messages.
  static std::string shown_name(const CudaCpp& source, const std::string& kernel) {
    return source.file.empty() ? kernel + ".cu" : source.file;
  }
};

}  // namespace wye::kernel
