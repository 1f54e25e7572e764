#pragma once
/// Maps the result codes of the driver to errors.
#include <cuda.h>
#include <wye/base/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace wye::inline v0::cuda {

/// The operations that a failure affects.
enum class Reach : std::uint8_t {
  call,     ///< this call; a repeated call fails too
  retry,    ///< this call; a later call may succeed
  memory,   ///< this call, for lack of memory
  lane,     ///< the work of the lane
  device,   ///< all work in the device's context
  process,  ///< all use of CUDA until the process ends
};

/// A result code with the code of wye's error, its reach and its name.
struct ResultMeaning {
  CUresult result;
  Errc code;
  Reach reach;
  std::string_view name;
};
/// Returns the meaning of a code. A code that is not in the table comes from a newer driver; it
/// ends the device, because its reach is not known.
const ResultMeaning& meaning(CUresult result) noexcept;
std::span<const ResultMeaning> meanings() noexcept;
/// Returns the fault of a kernel that fails with this code, as the end of a sentence. Empty for
/// other codes.
std::string_view fault_description(CUresult result) noexcept;
/// Returns whether the device cannot be used after this code.
inline bool ends_device(CUresult result) noexcept { return meaning(result).reach >= Reach::device; }

/// Returns the error of a failed call of the driver.
Error failure(CUresult result, std::string_view api, std::string sentence, Place place = Place::here());

}  // namespace wye::cuda
