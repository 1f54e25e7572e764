#pragma once
/// Compiling sources without a device: for tools, build systems and tests.
#include <wye/base/result.hpp>
#include <wye/device/feature.hpp>
#include <wye/device/schema.hpp>
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wye {
inline namespace v0 {

struct CompileOptions {
  std::string name = "kernel";   ///< of the kernel, for messages
  std::string target = "spirv";  ///< what to make; SPIR-V is all there is
};

/// A parameter as a shader has it, and where.
struct SourceParameter {
  Slot slot;                             ///< what a kernel may declare for it
  std::optional<std::uint32_t> binding;  ///< of a storage buffer of set 0
  std::uint32_t offset = 0;              ///< in the push constants, where it is no such buffer
};

/// What is made of a source, and what it then expects of whoever runs it.
struct Compiled {
  SpirV spirv;
  std::vector<SourceParameter> parameters;  ///< storage buffers first, then push constants
  std::uint32_t push_bytes = 0;             ///< size of the push constants
  Extent3 workgroup{1};
  Features needs;
  std::vector<Diagnostic> warnings;
  std::vector<std::string> files;  ///< that were read to find what the source includes, each once
};

/// Makes SPIR-V of a source, proves that it is valid and reads what it expects. SPIR-V stays as it is.
/// Threads: thread-safe.
/// Errors: compile_failed with its diagnostics, invalid_argument, unsupported (a host function, a target wye
///         does not know, what wye does not offer, GLSL in a build without its compiler).
/// Cost:   the first GLSL of a process some 70 ms, later ones 0.5 ms and more.
WYE_API Result<Compiled> compile(const AnySource& source, const CompileOptions& options = {});

/// The same source with all it can include in its `includes`: it needs neither files nor `find_include`.
/// Errors: unsupported: different texts are included by one name.
WYE_API Result<Glsl> self_contained(const Glsl& source);

}  // namespace v0
}  // namespace wye
