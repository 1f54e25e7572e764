#pragma once
/// What a driver would not survive: lavapipe crashes on bindings outside the layout and takes any workgroup.
/// This is not a validator; the kernel room runs one.
#include <wye/base/extent.hpp>

#include "backend/vulkan/spirv.hpp"
#include "backend/vulkan/vulkan_adapter.hpp"
#include "device/artefact.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Checks that `artefact`, whose code is `module`, fits itself and the device: its entry point, its
/// descriptors, its parameter block, its capabilities, its workgroup and shared memory.
/// Errors: compile_failed (the code does not hold what the artefact says), unsupported (the device is too
///          small for it).
Result<void> check_spirv(const spirv::Module& module, const device::Artefact& artefact,
                         const PhysicalDevice& physical);

/// Whether the module has 8- or 16-bit numbers among its push constants, and the device has them in storage buffers only.
bool has_narrow_parameters_without_feature(const spirv::Module& module, const PhysicalDevice& physical);

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
