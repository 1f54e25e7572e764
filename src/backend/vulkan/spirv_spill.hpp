#pragma once
/// Parameters that do not fit into push constants.
#include <cstdint>
#include <vector>

#include "backend/vulkan/spirv.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// The same module with its push-constant block read from a storage buffer at set 0, `binding`: std430 is the
/// layout of both, so only the storage class of the block, of its variable and of pointers into it changes.
/// No other variable may use that binding.
std::vector<std::uint32_t> spill_push_constants(const spirv::Module& module, std::uint32_t binding);

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
