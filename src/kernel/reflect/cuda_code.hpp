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

namespace wye::inline v0::kernel {

/// A generation of NVIDIA's processors: "sm_90", "sm_90a".
struct Architecture {
  unsigned number = 0;  ///< 90 for 9.0
  /// Limits the devices of its code. 0: later architectures of its generation, too (PTX: all later
  /// architectures). 'a': only this architecture. 'f': later architectures of its generation, too.
  char only = 0;
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// Parses "sm_90a", or "compute_90a" with that prefix.
std::optional<Architecture> parse_architecture(std::string_view name, std::string_view prefix = "sm_");
/// Returns "sm_90a".
std::string to_string(Architecture architecture);
/// Returns whether machine code for `code` runs on `device`.
bool runs_cubin(Architecture code, Architecture device);
/// Returns whether the driver of `device` can compile PTX for `code`.
bool runs_ptx(Architecture code, Architecture device);

/// Returns the CUDA version of the oldest driver that takes PTX of `version`, 12020 for 82; 0: all
/// drivers, or unknown.
/// Source: the table of releases in NVIDIA's "PTX ISA".
std::uint64_t oldest_driver(unsigned version) noexcept;

/// The interface of a kernel, and the architecture of its code.
struct CudaCode {
  Architecture architecture;
  Interface interface;              ///< the parameters are its members
  std::optional<Extent3> required;  ///< the only possible block
  std::uint64_t most_threads = 0;   ///< of a block; 0: not stated
  unsigned version = 0;             ///< of PTX: 82 for 8.2; 0: not stated
};

/// Checks that a device can exist that supports these launch options.
/// Errors: invalid_argument.
Result<void> check_launch(const std::optional<Extent3>& workgroup, Bytes dynamic_shared,
                          const LaunchOptions& launch, const std::string& kernel);
template <class Source>
Result<void> check_launch(const Source& source, const std::string& kernel) {
  return check_launch(source.workgroup, source.dynamic_shared, source.launch, kernel);
}

/// Returns the block of a launch: the declared block, otherwise the required block, otherwise 256
/// threads or the maximum of the code.
/// Errors: invalid_argument (the code does not allow the declared block).
Result<Extent3> block_of(const std::optional<Extent3>& declared, const CudaCode& code,
                         const std::string& kernel);

/// Reads the kernel `entry` of PTX.
/// Errors: invalid_argument (truncated, no such kernel, no architecture), unsupported (textures).
/// Source: the PTX ISA, version 9.0.
Result<CudaCode> reflect_ptx(std::string_view text, std::string_view entry);

/// Returns the architecture of a cubin.
/// Errors: invalid_argument (not a cubin, truncated).
Result<Architecture> cubin_architecture(std::span<const std::byte> bytes);

/// Reads the kernel `entry` of a cubin. Reads nothing outside `bytes`, even if they are malformed.
/// Errors: invalid_argument (not a cubin, truncated, damaged, no such kernel).
/// Source: ELF-64; for the numbers of NVIDIA's sections, the output of LLVM's and NVIDIA's tools.
Result<CudaCode> reflect_cubin(std::span<const std::byte> bytes, std::string_view entry);

}  // namespace wye::kernel
