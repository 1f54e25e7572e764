#pragma once
/// What the driver's result codes mean here.
#include <cuda.h>
#include <wye/base/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace wye {
inline namespace v0 {
namespace cuda {

/// How far a failure goes.
enum class Reach : std::uint8_t {
  call,     ///< this call, which was wrong
  retry,    ///< this call, which may succeed later
  memory,   ///< this call: there is no room
  lane,     ///< what the lane was given
  device,   ///< everything on the device's context
  process,  ///< CUDA, for the rest of this process
};

/// A result code's place among wye's, how far it goes, and its name.
struct ResultMeaning {
  CUresult result;
  Errc code;
  Reach reach;
  std::string_view name;
};
/// A code that is not in the table is of a driver newer than it: the device is given up, for nothing says that it is well.
const ResultMeaning& meaning(CUresult result) noexcept;
std::span<const ResultMeaning> meanings() noexcept;
/// What a kernel did that ended with this code: how a sentence about the device goes on. Empty for other codes.
std::string_view misdeed(CUresult result) noexcept;
/// Whether the device cannot be used after.
inline bool ends_device(CUresult result) noexcept { return meaning(result).reach >= Reach::device; }

/// The error of a call of the driver that failed.
Error failure(CUresult result, std::string_view api, std::string sentence, Place place = Place::here());

}  // namespace cuda
}  // namespace v0
}  // namespace wye
