#pragma once
/// What an `AnySource` holds.
#include <wye/kernel/source.hpp>

#include <string>
#include <variant>
#include <vector>

#include "device/artefact.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// A host function, type-erased.
struct HostSource {
  std::shared_ptr<const device::HostCode> code;
  HostOptions options;
};

struct SourceData {
  std::variant<Glsl, SpirV, HostSource> source;
};

/// Bytes of one number; 0 for `opaque`.
std::uint32_t size_of(ElementType type);

/// Whether a source can mean anything at all, for a kernel of this name.
/// Errors: invalid_argument.
Result<void> check(const Glsl& source, const std::string& kernel);

/// Constants in the order of their ids.
/// Errors: invalid_argument: one is given twice.
Result<std::vector<device::Specialization>> canonical(const std::vector<SpecializationConstant>& constants,
                                                      const std::string& kernel);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
