#pragma once
/// Compiles sources without a device, for tools, build systems and tests.
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/schema.hpp>
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wye::inline v0 {

/// Options of `compile`.
struct CompileOptions {
  std::string name =
      "kernel";  ///< of the kernel in messages, and of its CUDA function if the source names none
  /// Target: "spirv"; "sm_90" for machine code; "compute_90" for PTX. Empty: SPIR-V for shaders and
  /// Slang; for CUDA C++, PTX of the oldest architecture that the compiler supports.
  std::string target = {};
  /// Path of the NVRTC that compiles CUDA C++; empty: the newest that the loader finds. A driver
  /// accepts PTX only if its NVRTC is not newer than the driver. To ship PTX, name an old NVRTC.
  std::string nvrtc = {};
};

/// A parameter in compiled code, with its location. CUDA code stores sizes only: buffers, structs
/// and addresses appear as structs of that size.
struct SourceParameter {
  Slot slot;                             ///< a slot that a kernel may declare for it
  std::optional<std::uint32_t> binding;  ///< of a storage buffer of set 0
  std::uint32_t offset = 0;              ///< in the argument block, if it has no binding
};

/// Compiled code and its requirements.
struct Compiled {
  SpirV spirv;                              ///< of a shader
  std::vector<SourceParameter> parameters;  ///< storage buffers first, then the argument block
  std::uint32_t push_bytes = 0;             ///< size of the argument block: a shader's push constants
  Extent3 workgroup{1};
  Features needs;
  std::vector<Diagnostic> warnings;
  std::vector<std::string> files;  ///< the files that were read for includes, each once
  std::optional<Cubin> cubin = {};
  std::optional<Ptx> ptx = {};
};

/// Compiles a source and reads the requirements of its code. Validates SPIR-V. SPIR-V, PTX and
/// machine code are not changed.
/// Threads: thread-safe.
/// Errors: compile_failed with its diagnostics, invalid_argument, unsupported (a host function, an
///         unknown target or a target of another language, a feature that wye does not offer, a
///         build without the compiler), unavailable (NVRTC or Slang cannot be opened, no compile
///         thread can be started).
/// Cost:   about 70 ms for the first GLSL of a process, then 0.5 ms or more; 20 ms or more for CUDA
///         C++; about 200 ms for the first Slang, then 7 ms or more.
WYE_API Result<Compiled> compile(const AnySource& source, const CompileOptions& options = {});

/// Returns a copy of the source with all texts that it can include in its `includes`. The copy
/// needs neither files nor `find_include`, except for headers of the CUDA Toolkit.
/// Errors: unsupported (different texts have the same name).
WYE_API Result<Glsl> self_contained(const Glsl& source);
WYE_API Result<CudaCpp> self_contained(const CudaCpp& source);
WYE_API Result<Slang> self_contained(const Slang& source);

}  // namespace wye
