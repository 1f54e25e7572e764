#pragma once
/// VK_KHR_cooperative_matrix, which Vulkan's headers have from 1.3.255 on.
/// Source: the Vulkan specification, appendix "VK_KHR_cooperative_matrix".
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <cstdint>

#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
enum VkComponentTypeKHR { VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1 };
enum VkScopeKHR { VK_SCOPE_SUBGROUP_KHR = 3 };
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  std::uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif

namespace wye::inline v0::vulkan {

inline constexpr auto cooperative_matrix_features = static_cast<VkStructureType>(1000506000);
inline constexpr auto cooperative_matrix_properties = static_cast<VkStructureType>(1000506001);

/// The specialization constants for rows, columns and inner dimension
/// (`Limits::cooperative_matrix`).
inline constexpr std::uint32_t cooperative_matrix_constants[] = {2000, 2001, 2002};

}  // namespace wye::vulkan
