#pragma once
/// Compares the declared parameters of a kernel with those of a source, and plans how each is
/// passed.
#include <wye/base/result.hpp>
#include <wye/device/schema.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "device/artefact.hpp"
#include "kernel/reflect/spirv.hpp"

namespace wye::inline v0::kernel {

/// The outcome of a match.
struct Match {
  ParamSchema schema;                    ///< as declared, with names of the source for parameters without one
  std::vector<device::Passing> passing;  ///< one per slot
  std::uint32_t parameter_bytes = 0;     ///< of the push-constant block
};

/// The kind of a source, for messages.
enum class Language : std::uint8_t { shader, function };

/// Matches declared parameters with those of a shader. Storage buffers, in the order of their
/// bindings, are the buffer parameters. Members of the push-constant block, in the order of their
/// offsets, are the other parameters. In a shader without bound buffers, and in a CUDA function,
/// the members are all parameters; buffers are {address, count} or an address.
/// Errors: invalid_argument, naming `kernel`, the parameter, the declaration and the type in the
///         source.
Result<Match> match(const ParamSchema& declared, const Interface& source, const std::string& kernel,
                    Language language = Language::shader);

}  // namespace wye::kernel
