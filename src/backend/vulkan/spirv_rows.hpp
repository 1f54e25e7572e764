#pragma once
/// Grids of one row of workgroups that are longer than a dispatch may be wide.
#include <wye/base/extent.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/vulkan/spirv.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Returns the same module for a grid of n x 1 x 1 workgroups that is dispatched as rows of `width` workgroups, with the row as y.
/// Each load of WorkgroupId or GlobalInvocationId gives what it gives in the grid of one row. `workgroup` is the module's own size.
/// A load becomes ten instructions; no variable is added, so the interface of the entry point stays as it is.
/// Errors: unsupported: why the loads cannot be rewritten (the module reads NumWorkgroups, or uses a pointer to a built-in for
/// something that is not a load).
Result<std::vector<std::uint32_t>> split_into_rows(const spirv::Module& module, std::string_view kernel,
                                                   std::uint32_t width, Extent3 workgroup);

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
