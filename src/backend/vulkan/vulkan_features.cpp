#include "backend/vulkan/vulkan_features.hpp"

namespace wye::inline v0::vulkan {

VkPhysicalDeviceFeatures2* FeatureChain::link() noexcept {
  core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  atomic_float.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
  core.pNext = &v11;
  v11.pNext = &v12;
  // Drivers get only the structs of extensions that they have.
  cooperative_matrix.sType = cooperative_matrix_features;
  cooperative_matrix.pNext = nullptr;
  void* const rest = has_cooperative_matrix ? &cooperative_matrix : nullptr;
  atomic_float.pNext = rest;
  v12.pNext = has_atomic_float ? &atomic_float : rest;
  return &core;
}

FeatureChain wanted_of(const FeatureChain& offered) {
  FeatureChain wanted;
  wanted.has_atomic_float = offered.has_atomic_float;
  wanted.has_cooperative_matrix = offered.has_cooperative_matrix;
  const auto take = [&](auto part, auto member) { (wanted.*part).*member = (offered.*part).*member; };
  using Core = VkPhysicalDeviceFeatures;
  for (const auto member : {&Core::shaderInt64, &Core::shaderFloat64, &Core::shaderInt16})
    wanted.core.features.*member = offered.core.features.*member;
  using V11 = VkPhysicalDeviceVulkan11Features;
  for (const auto member : {&V11::storageBuffer16BitAccess, &V11::storagePushConstant16})
    take(&FeatureChain::v11, member);
  using V12 = VkPhysicalDeviceVulkan12Features;
  for (const auto member :
       {&V12::storageBuffer8BitAccess, &V12::storagePushConstant8, &V12::shaderBufferInt64Atomics,
        &V12::shaderSharedInt64Atomics, &V12::shaderFloat16, &V12::shaderInt8, &V12::scalarBlockLayout,
        &V12::shaderSubgroupExtendedTypes, &V12::timelineSemaphore, &V12::bufferDeviceAddress,
        &V12::vulkanMemoryModel, &V12::vulkanMemoryModelDeviceScope})
    take(&FeatureChain::v12, member);
  // If only the memory model is enabled, atomics of device scope are invalid in all modules. GLSL
  // generates such atomics.
  if (!wanted.v12.vulkanMemoryModelDeviceScope) wanted.v12.vulkanMemoryModel = VK_FALSE;
  using AtomicFloat = VkPhysicalDeviceShaderAtomicFloatFeaturesEXT;
  for (const auto member :
       {&AtomicFloat::shaderBufferFloat32Atomics, &AtomicFloat::shaderBufferFloat32AtomicAdd})
    take(&FeatureChain::atomic_float, member);
  // SPIR-V requires the memory model for cooperative matrices.
  if (wanted.v12.vulkanMemoryModel)
    take(&FeatureChain::cooperative_matrix, &VkPhysicalDeviceCooperativeMatrixFeaturesKHR::cooperativeMatrix);
  return wanted;
}

namespace {

/// Returns the struct at `next` as a T, without its chain.
template <class T>
T copied(const VkBaseInStructure& next) {
  T copy = reinterpret_cast<const T&>(next);
  copy.pNext = nullptr;
  return copy;
}

}  // namespace

FeatureChain enabled_in(const VkDeviceCreateInfo& created) {
  FeatureChain chain;
  if (created.pEnabledFeatures) chain.core.features = *created.pEnabledFeatures;
  // The features of the 1.1 and 1.2 structs may also be enabled by separate structs.
  VkPhysicalDeviceVulkan11Features& v11 = chain.v11;
  VkPhysicalDeviceVulkan12Features& v12 = chain.v12;
  for (auto* next = static_cast<const VkBaseInStructure*>(created.pNext); next; next = next->pNext) {
    const VkBaseInStructure& one = *next;
    if (one.sType == cooperative_matrix_features) {  // no enumerator of older headers
      chain.cooperative_matrix = copied<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(one);
      chain.has_cooperative_matrix = true;
      continue;
    }
    switch (one.sType) {
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
        chain.core = copied<VkPhysicalDeviceFeatures2>(one);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
        v11 = copied<VkPhysicalDeviceVulkan11Features>(one);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
        v12 = copied<VkPhysicalDeviceVulkan12Features>(one);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT:
        chain.atomic_float = copied<VkPhysicalDeviceShaderAtomicFloatFeaturesEXT>(one);
        chain.has_atomic_float = true;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        v12.timelineSemaphore = copied<VkPhysicalDeviceTimelineSemaphoreFeatures>(one).timelineSemaphore;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        v12.bufferDeviceAddress =
            copied<VkPhysicalDeviceBufferDeviceAddressFeatures>(one).bufferDeviceAddress;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES:
        v12.scalarBlockLayout = copied<VkPhysicalDeviceScalarBlockLayoutFeatures>(one).scalarBlockLayout;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES:
        v12.shaderSubgroupExtendedTypes =
            copied<VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures>(one).shaderSubgroupExtendedTypes;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES:
        v12.vulkanMemoryModel = copied<VkPhysicalDeviceVulkanMemoryModelFeatures>(one).vulkanMemoryModel;
        v12.vulkanMemoryModelDeviceScope =
            copied<VkPhysicalDeviceVulkanMemoryModelFeatures>(one).vulkanMemoryModelDeviceScope;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES: {
        const auto storage = copied<VkPhysicalDevice16BitStorageFeatures>(one);
        v11.storageBuffer16BitAccess = storage.storageBuffer16BitAccess;
        v11.storagePushConstant16 = storage.storagePushConstant16;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES: {
        const auto storage = copied<VkPhysicalDevice8BitStorageFeatures>(one);
        v12.storageBuffer8BitAccess = storage.storageBuffer8BitAccess;
        v12.storagePushConstant8 = storage.storagePushConstant8;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES: {
        const auto types = copied<VkPhysicalDeviceShaderFloat16Int8Features>(one);
        v12.shaderFloat16 = types.shaderFloat16;
        v12.shaderInt8 = types.shaderInt8;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES: {
        const auto atomics = copied<VkPhysicalDeviceShaderAtomicInt64Features>(one);
        v12.shaderBufferInt64Atomics = atomics.shaderBufferInt64Atomics;
        v12.shaderSharedInt64Atomics = atomics.shaderSharedInt64Atomics;
        break;
      }
      default: break;
    }
  }
  return chain;
}

std::string missing_of(const FeatureChain& chain) {
  std::string missing;
  if (!chain.v12.timelineSemaphore) missing = "timelineSemaphore";
  if (!chain.v12.bufferDeviceAddress)
    missing += missing.empty() ? "bufferDeviceAddress" : " and bufferDeviceAddress";
  return missing;
}

Extent3 cooperative_matrix_of(std::span<const VkCooperativeMatrixPropertiesKHR> offered) {
  constexpr auto half = VK_COMPONENT_TYPE_FLOAT16_KHR;
  constexpr auto sum = VK_COMPONENT_TYPE_FLOAT32_KHR;
  const auto fits = [](std::uint32_t size) { return size == 8 || size == 16; };
  Extent3 best{0, 0, 0};
  for (const VkCooperativeMatrixPropertiesKHR& one : offered) {
    const bool types = one.AType == half && one.BType == half && one.CType == sum && one.ResultType == sum;
    const bool sizes = fits(one.MSize) && fits(one.NSize) && fits(one.KSize);
    const Extent3 size(one.MSize, one.NSize, one.KSize);
    if (types && sizes && one.scope == VK_SCOPE_SUBGROUP_KHR && size.count() > best.count()) best = size;
  }
  return best;
}

Features features_of(const FeatureChain& chain, VkSubgroupFeatureFlags subgroup_operations,
                     const Extent3& matrix) {
  constexpr VkSubgroupFeatureFlags all_subgroups =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
      VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  const bool subgroups = (subgroup_operations & all_subgroups) == all_subgroups;
  const struct {
    Feature feature;
    bool offered;
  } rows[] = {
      {Feature::float16, chain.v12.shaderFloat16 != 0},
      {Feature::float64, chain.core.features.shaderFloat64 != 0},
      {Feature::int8, chain.v12.shaderInt8 != 0},
      {Feature::int16, chain.core.features.shaderInt16 != 0},
      {Feature::int64, chain.core.features.shaderInt64 != 0},
      {Feature::storage8, chain.v12.storageBuffer8BitAccess != 0},
      {Feature::storage16, chain.v11.storageBuffer16BitAccess != 0},
      {Feature::subgroups, subgroups},
      {Feature::atomics_int64, chain.v12.shaderBufferInt64Atomics != 0},
      {Feature::atomics_float32,
       chain.has_atomic_float && chain.atomic_float.shaderBufferFloat32AtomicAdd != 0},
      {Feature::scalar_layout, chain.v12.scalarBlockLayout != 0},
      // Parameters spill to a storage buffer if push constants do not support the width.
      {Feature::parameters8, chain.v12.storagePushConstant8 != 0 || chain.v12.storageBuffer8BitAccess != 0},
      {Feature::parameters16,
       chain.v11.storagePushConstant16 != 0 || chain.v11.storageBuffer16BitAccess != 0},
      {Feature::subgroups_clustered,
       subgroups && (subgroup_operations & VK_SUBGROUP_FEATURE_CLUSTERED_BIT) != 0},
      {Feature::memory_model, chain.v12.vulkanMemoryModel != 0},
      {Feature::cooperative_matrix, chain.cooperative_matrix.cooperativeMatrix != 0 && matrix.count() != 0},
  };
  Features features;
  for (const auto& row : rows)
    if (row.offered) features.add(row.feature);
  return features;
}

}  // namespace wye::vulkan
