#pragma once
/// Checks that prevent crashes of drivers: lavapipe crashes on bindings outside the layout and
/// accepts any workgroup. They do not validate a module; the kernel room runs the validator.
#include <wye/base/extent.hpp>

#include "backend/vulkan/vulkan_adapter.hpp"
#include "device/artefact.hpp"
#include "spirv/module.hpp"

namespace wye::inline v0::vulkan {

/// Reads the code of `artefact`.
/// Errors: compile_failed if it is not SPIR-V, is truncated, or is newer than the device supports.
Result<spirv::Module> read_spirv(const device::Artefact& artefact, const PhysicalDevice& physical);

/// Checks that `artefact`, whose code is `module`, is consistent with its code and fits the device:
/// its entry point, its descriptors, its parameter block, its capabilities, its workgroup and
/// shared memory.
/// Errors: compile_failed if artefact and code differ; unsupported if the device's limits or
///         features do not suffice.
Result<void> check_spirv(const spirv::Module& module, const device::Artefact& artefact,
                         const PhysicalDevice& physical);

/// Returns whether the module has 8- or 16-bit push constants that the device supports in storage
/// buffers only.
bool has_narrow_parameters_without_feature(const spirv::Module& module, const PhysicalDevice& physical);

}  // namespace wye::vulkan
