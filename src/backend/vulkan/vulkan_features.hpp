#pragma once
/// Which of a driver's features are used, and what they mean to kernels.
#include <wye/device/adapter.hpp>

#include <string>

#include "backend/vulkan/vulkan_dispatch.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// The driver's feature structs, chained.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 core{};
  VkPhysicalDeviceVulkan11Features v11{};
  VkPhysicalDeviceVulkan12Features v12{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{};
  bool has_atomic_float = false;  ///< whether VK_EXT_shader_atomic_float is offered

  /// Links the structs where they lie now, and gives the head: for the call that follows, no longer.
  VkPhysicalDeviceFeatures2* link() noexcept;
};

/// Of what is offered, what wye switches on: what its kernels can use, and nothing else. Drivers and other
/// users of the process have been seen to suffer from "everything".
FeatureChain wanted_of(const FeatureChain& offered);

/// What a host enabled in a device that it made with `created`.
FeatureChain enabled_in(const VkDeviceCreateInfo& created);

/// What a device must have, and `chain` has not: "timelineSemaphore". Empty where it has all.
std::string missing_of(const FeatureChain& chain);

/// What kernels may use of it.
Features features_of(const FeatureChain& chain, VkSubgroupFeatureFlags subgroup_operations);

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
