#pragma once
/// Rewrites modules for devices that cannot run them as they are.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <string_view>

#include "spirv/module.hpp"

namespace wye::inline v0::spirv {

/// Rewrites a module in place for more devices. A module that is cut short changes only before the
/// cut.
/// - A source language that tools and drivers of 2023 do not know becomes "unknown", because they
///   refuse it.
/// OpSource only informs debuggers.
/// - The capability of 8- and 16-bit numbers in storage and uniform buffers becomes that of storage
///   buffers
/// only, because wye binds no uniform buffers. Slang always declares both.
/// - Uniform buffers become read-only storage buffers. Every layout of a uniform buffer is valid in
///   a storage
/// buffer, which may be larger. SPIR-V before 1.3 keeps its uniform buffers.
void make_portable(Words& words);

/// Returns the module with its push-constant block in a storage buffer at set 0, `binding`, which
/// no other variable may use. Both have the layout std430, so only the storage class of the block,
/// its variable and pointers into it changes.
Words spill_push_constants(const Module& module, std::uint32_t binding);

/// Returns the module for a grid of n x 1 x 1 workgroups that is dispatched as rows of `width` workgroups, with the row as y.
/// Each load of WorkgroupId or GlobalInvocationId gives its value in the grid of one row. `workgroup` is the module's own size.
/// A load becomes ten instructions; the interface of the entry point does not change.
/// Errors:  unsupported, with the reason why the loads cannot be rewritten (the module reads NumWorkgroups,
///          or uses a pointer
///         to a built-in in another instruction than a load).
Result<Words> split_into_rows(const Module& module, std::string_view kernel, std::uint32_t width,
                              Extent3 workgroup);

}  // namespace wye::spirv
