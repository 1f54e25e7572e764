#pragma once
/// Modules that are rewritten so that a device can run them.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <string_view>

#include "spirv/module.hpp"

namespace wye {
inline namespace v0 {
namespace spirv {

/// Rewrites a module from a compiler or the application into one that more devices run, in place. A module that is truncated
/// changes only before the cut.
/// - A source language that is newer than the tools and drivers of 2023 becomes "unknown": they refuse it. OpSource is a
///   remark for debuggers; nothing else changes with it.
/// - 8- and 16-bit numbers in storage and uniform buffers become those in storage buffers only, since wye binds no others.
///   Slang always declares both.
/// - Uniform buffers become storage buffers that are not writable. Every layout of a uniform buffer is one of a storage
///   buffer, which may be larger. SPIR-V before 1.3 keeps its uniform buffers.
void make_portable(Words& words);

/// Returns the module with its push-constant block read from a storage buffer at set 0, `binding`, which no other variable
/// may use. Both have the layout std430, so only the storage class of the block, its variable and pointers into it changes.
Words spill_push_constants(const Module& module, std::uint32_t binding);

/// Returns the module for a grid of n x 1 x 1 workgroups that is dispatched as rows of `width` workgroups, with the row as y.
/// Each load of WorkgroupId or GlobalInvocationId gives its value in the grid of one row. `workgroup` is the module's own size.
/// A load becomes ten instructions; the interface of the entry point stays as it is.
/// Errors: unsupported, with the reason why the loads cannot be rewritten (the module reads NumWorkgroups, or uses a pointer
///         to a built-in for something that is not a load).
Result<Words> split_into_rows(const Module& module, std::string_view kernel, std::uint32_t width,
                              Extent3 workgroup);

}  // namespace spirv
}  // namespace v0
}  // namespace wye
