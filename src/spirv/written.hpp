#pragma once
/// The result type of `find_writes`.
#include <cstdint>

namespace wye::inline v0::spirv {

/// Tells whether code writes to memory; unknown if the writes cannot be followed.
enum class Written : std::uint8_t { no, yes, unknown };

}  // namespace wye::spirv
