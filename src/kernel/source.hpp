#pragma once
/// What an `AnySource` holds.
#include <wye/kernel/source.hpp>

#include <variant>

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

}  // namespace kernel
}  // namespace v0
}  // namespace wye
