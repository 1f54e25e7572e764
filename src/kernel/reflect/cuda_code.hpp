#pragma once
/// Reads the interface of kernels in PTX and cubins.
#include <wye/base/bytes.hpp>
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/executable.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernel/reflect/spirv.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// A generation of NVIDIA's processors: "sm_90", "sm_90a".
struct Architecture {
  unsigned number = 0;  ///< ten times its first number, and its second
  /// What code for it runs on. 0: this one, and later ones of its generation (as PTX: all later ones); 'a': no
  /// other; 'f': later ones of its generation.
  char only = 0;
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// The architecture that "sm_90a", or "compute_90a" with another prefix, names.
std::optional<Architecture> parse_architecture(std::string_view name, std::string_view prefix = "sm_");
/// "sm_90a".
std::string to_string(Architecture architecture);
/// Whether machine code for `code` runs on `device`.
bool runs_cubin(Architecture code, Architecture device);
/// Whether the driver of `device` can make machine code of PTX for `code`.
bool runs_ptx(Architecture code, Architecture device);

/// The interface of a kernel, and the architecture that it is compiled for.
struct CudaCode {
  Architecture architecture;
  Interface interface;              ///< the parameters are its members
  std::optional<Extent3> required;  ///< the only block it runs in
  std::uint64_t most_threads = 0;   ///< of a block; 0: it does not say
};

/// Whether any device can launch this.
/// Errors: invalid_argument.
Result<void> check_launch(const std::optional<Extent3>& workgroup, Bytes dynamic_shared,
                          const LaunchOptions& launch, const std::string& kernel);
template <class Source>
Result<void> check_launch(const Source& source, const std::string& kernel) {
  return check_launch(source.workgroup, source.dynamic_shared, source.launch, kernel);
}

/// Returns the block of a launch: the declared block, otherwise the required one, otherwise 256 threads, or
/// of as many as it allows.
/// Errors: invalid_argument: the code does not allow it.
Result<Extent3> block_of(const std::optional<Extent3>& declared, const CudaCode& code,
                         const std::string& kernel);

/// Reads the kernel `entry` of a text of PTX.
/// Errors: invalid_argument (cut short, no such kernel, no architecture), unsupported (textures).
/// Source: the PTX ISA, version 9.0.
Result<CudaCode> reflect_ptx(std::string_view text, std::string_view entry);

/// The architecture of a cubin.
/// Errors: invalid_argument: it is none, or cut short.
Result<Architecture> cubin_architecture(std::span<const std::byte> bytes);

/// Reads the kernel `entry` of a cubin: reads nothing outside `bytes`, whatever they are.
/// Errors: invalid_argument (not a cubin, cut short, damaged, no such kernel).
/// Source: ELF-64; the numbers of NVIDIA's own sections are as LLVM and NVIDIA's tools print them.
Result<CudaCode> reflect_cubin(std::span<const std::byte> bytes, std::string_view entry);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
