#pragma once
/// Finds the most iterations of the loops of a shader.
#include <cstdint>
#include <optional>

#include "spirv/module.hpp"

namespace wye::inline v0::spirv {

/// Returns a bound of the iterations that all loops of one invocation of `entry` have together,
/// also those of the functions that it calls. Returns nothing if the number of iterations of a loop
/// is not limited by constants. Finds the limit of loops with one counter, which a constant is added
/// to, or multiplied with or divided by, in each iteration, and whose condition compares it with a
/// constant.
std::optional<std::uint64_t> most_iterations(const Module& module, Id entry);

}  // namespace wye::spirv
