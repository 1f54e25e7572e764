#pragma once
/// Compares the declared parameters of a kernel with those of a source, and plans how each reaches the code.
#include <wye/base/result.hpp>
#include <wye/device/schema.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "device/artefact.hpp"
#include "kernel/reflect/spirv.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// The outcome of a match.
struct Match {
  ParamSchema schema;                    ///< as declared; a parameter without a name gets that of the source
  std::vector<device::Passing> passing;  ///< one per slot
  std::uint32_t parameter_bytes = 0;     ///< of the push-constant block
};

/// The kind of a source, for messages.
enum class Language : std::uint8_t { shader, function };

/// Matches declared parameters with those of a shader: storage buffers, in order of their binding numbers,
/// are the buffer parameters in order; members of the push-constant block, in order of their offsets, are the
/// others. In a shader without bound buffers, and in a function of CUDA, the members are all parameters,
/// buffers among them as {address, count} or address.
/// Errors: invalid_argument, naming `kernel`, the parameter, the declaration and the type in the source.
Result<Match> match(const ParamSchema& declared, const Interface& source, const std::string& kernel,
                    Language language = Language::shader);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
