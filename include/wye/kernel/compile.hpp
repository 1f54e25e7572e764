#pragma once
/// Compiling sources without a device: for tools, build systems and tests.
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/schema.hpp>
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wye {
inline namespace v0 {

struct CompileOptions {
  std::string name = "kernel";  ///< of the kernel, for messages, and of its function where CUDA names none
  /// What to make: "spirv"; "sm_90", machine code; "compute_90", PTX. Empty: SPIR-V of a shader and of Slang, and
  /// of CUDA C++ the PTX for the oldest architecture that its compiler knows.
  std::string target = {};
  /// The file of the NVRTC that compiles CUDA C++; empty: the newest that the loader finds. A driver takes PTX of an NVRTC
  /// that is not newer than it: name an old one for PTX that is shipped.
  std::string nvrtc = {};
};

/// A parameter as the code has it, and where. CUDA says sizes only: what may be a buffer, a struct or an address
/// is a struct of so many bytes.
struct SourceParameter {
  Slot slot;                             ///< what a kernel may declare for it
  std::optional<std::uint32_t> binding;  ///< of a storage buffer of set 0
  std::uint32_t offset = 0;              ///< in the argument block, where it is no such buffer
};

/// What is made of a source, and what it then expects of whoever runs it.
struct Compiled {
  SpirV spirv;                              ///< of a shader
  std::vector<SourceParameter> parameters;  ///< storage buffers first, then the argument block
  std::uint32_t push_bytes = 0;             ///< size of the argument block: a shader's push constants
  Extent3 workgroup{1};
  Features needs;
  std::vector<Diagnostic> warnings;
  std::vector<std::string> files;  ///< that were read to find what the source includes, each once
  std::optional<Cubin> cubin = {};
  std::optional<Ptx> ptx = {};
};

/// Makes code of a source and reads what that expects; SPIR-V is proved to be valid. What is code already stays
/// as it is.
/// Threads: thread-safe.
/// Errors: compile_failed with its diagnostics, invalid_argument, unsupported (a function of the host's, a
///         target that is not known or not for this language, what wye does not offer, a build without the
///         compiler), unavailable (NVRTC or Slang cannot be opened; no thread can be started to compile on).
/// Cost:   the first GLSL of a process some 70 ms, later ones 0.5 ms and more; CUDA C++ 20 ms and more;
///         the first Slang some 200 ms, later ones 7 ms and more.
WYE_API Result<Compiled> compile(const AnySource& source, const CompileOptions& options = {});

/// The same source with all it can include in its `includes`: it needs neither files nor `find_include`, but
/// for headers of the CUDA Toolkit.
/// Errors: unsupported: different texts are included by one name.
WYE_API Result<Glsl> self_contained(const Glsl& source);
WYE_API Result<CudaCpp> self_contained(const CudaCpp& source);
WYE_API Result<Slang> self_contained(const Slang& source);

}  // namespace v0
}  // namespace wye
