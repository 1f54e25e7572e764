#pragma once
/// The driver's features that wye enables, and the features of kernels that they allow.
#include <wye/device/adapter.hpp>

#include <span>
#include <string>

#include "backend/vulkan/vulkan_dispatch.hpp"

namespace wye::inline v0::vulkan {

/// The driver's feature structs, chained.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 core{};
  VkPhysicalDeviceVulkan11Features v11{};
  VkPhysicalDeviceVulkan12Features v12{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix{};
  bool has_atomic_float = false;        ///< whether VK_EXT_shader_atomic_float is available
  bool has_cooperative_matrix = false;  ///< whether VK_KHR_cooperative_matrix is available

  /// Links the structs and returns the head. The links are invalid after a copy or a move.
  VkPhysicalDeviceFeatures2* link() noexcept;
};

/// Returns the features that wye enables: those that kernels can use, and no others. Enabling all
/// features has broken drivers and other users in the process.
FeatureChain wanted_of(const FeatureChain& offered);

/// Returns the features that the application enabled with `created`.
FeatureChain enabled_in(const VkDeviceCreateInfo& created);

/// Returns the required features that `chain` lacks: "timelineSemaphore". Empty if it lacks none.
std::string missing_of(const FeatureChain& chain);

/// Returns the features that kernels may use. `matrix` is the size of cooperative matrices, or 0.
Features features_of(const FeatureChain& chain, VkSubgroupFeatureFlags subgroup_operations,
                     const Extent3& matrix);

/// Returns rows, columns and inner dimension of the largest usable product of half matrices with
/// sums of float. Returns zeros if there is none.
Extent3 cooperative_matrix_of(std::span<const VkCooperativeMatrixPropertiesKHR> offered);

}  // namespace wye::vulkan
