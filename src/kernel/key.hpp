#pragma once
/// Keys of artefacts.
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <span>
#include <string_view>

#include "base/digest.hpp"
#include "device/artefact.hpp"
#include "kernel/compilers/includes.hpp"

namespace wye::inline v0::kernel {

/// Version of the kernel ABI (README.md). Changes when the same source would give another artefact
/// or another stored layout. Keys contain it, so different versions of wye can share a store.
inline constexpr std::uint32_t abi_version = 1;

/// All inputs of an artefact. The file name in diagnostics, the time, the machine and the driver
/// are not inputs.
struct Ingredients {
  std::string_view kernel;
  std::string_view language;  ///< "Glsl", "Slang", "SpirV", "CudaCpp", "Ptx", "Cubin"
  std::span<const std::byte> source;
  std::string_view entry;
  std::string_view compiler;                          ///< its build and options; empty if none is used
  std::span<const Macro> macros;                      ///< in any order
  std::span<const device::Specialization> constants;  ///< in any order
  std::optional<Extent3> tile;
  const ParamSchema* schema = nullptr;
  /// The source and the texts that it includes: their contents and the graph of includes, not their
  /// names.
  std::span<const SourceText> texts = {};
  /// Compile and launch options of code that is not for Vulkan.
  std::string_view options = {};
  std::span<const LinkConstant> link_constants = {};  ///< in any order
  /// Whether the names of the texts are part of the key. Slang names modules and symbols after
  /// them.
  bool named_texts = false;
};

/// Returns the key of an artefact, which is the same on every machine.
Digest shader_key(const Ingredients& ingredients);

/// Digests the contents of texts and the graph of their includes.
Digest texts_digest(std::span<const SourceText> texts);

/// Returns the key of an artefact that a compiler opened at run time makes from `source` for
/// `target`, "sm_90".
Digest target_key(const Digest& source, std::string_view compiler, std::string_view target);

/// Returns the digest of a kernel, of which `sources` are digests of its sources.
Digest kernel_digest(std::string_view name, const ParamSchema& schema, std::span<const Digest> sources);
/// Returns the digest of a function of the application, which is a source. `type`: a number of its
/// type in this process.
Digest function_digest(std::string_view language, std::uint64_t type, Extent3 tile);

/// Returns the key of a host function. Its code cannot be digested, so the id of its program
/// identifies it in this process.
Digest host_key(std::uint64_t program_id);
Digest native_key(std::uint64_t program_id, std::string_view backend);

}  // namespace wye::kernel
