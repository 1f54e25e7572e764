#pragma once
/// The contents of an `AnySource`.
#include <wye/kernel/source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "device/artefact.hpp"

namespace wye::inline v0::kernel {

/// A host function, type-erased.
struct HostSource {
  std::shared_ptr<const device::HostCode> code;
  HostOptions options;
};

/// A native function, type-erased.
struct NativeSource {
  std::shared_ptr<const device::NativeCode> code;
  std::string backend;
};

using OneSource = std::variant<Glsl, Slang, SpirV, CudaCpp, Ptx, Cubin, HostSource, NativeSource>;

/// Returns a hash: equal for equal sources, usually different for others. Reads a few words of each
/// text.
std::uint64_t sample(const OneSource& source);

struct SourceData {
  explicit SourceData(OneSource given) : source(std::move(given)), sample(kernel::sample(source)) {}
  const OneSource source;
  const std::uint64_t sample;
};

bool is_from_file(const AnySource& source);

/// Reads the file of a source again. Returns a source that is not from a file unchanged.
/// Errors: those of `from_file`.
Result<AnySource> read_again(const AnySource& source);

/// Returns the files that a source from a file depends on: its own, and every path searched for its
/// includes, existing or not.
std::vector<std::string> files_of(const AnySource& source);

/// Returns the size of one number in bytes; 0 for `opaque`.
std::uint32_t size_of(ElementType type);

/// Checks everything about a source that needs no compiler.
/// Errors: invalid_argument.
Result<void> check(const Glsl& source, const std::string& kernel);
Result<void> check(const CudaCpp& source, const std::string& kernel);
Result<void> check(const Slang& source, const std::string& kernel);

/// Returns the entry point of a source; its default is the name of the kernel.
template <class Source>
const std::string& kernel_entry(const Source& source, const std::string& kernel) {
  return source.entry.empty() ? kernel : source.entry;
}

/// Returns the constants in the order of their ids.
/// Errors: invalid_argument (an id is set twice).
Result<std::vector<device::Specialization>> canonical(const std::vector<SpecializationConstant>& constants,
                                                      const std::string& kernel);

}  // namespace wye::kernel
