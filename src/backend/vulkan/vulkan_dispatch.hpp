#pragma once
/// The driver's functions, in tables. No symbol of the loader is linked or global.
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>
#include <wye/base/result.hpp>

#include <functional>
#include <string_view>

#include "backend/vulkan/cooperative_matrix.hpp"
#include "base/float_environment.hpp"

namespace wye::inline v0::vulkan {

/// Returns the function to call instead of `real`, the driver's function `name`. Tests use it to
/// make calls fail.
using Wrap = std::function<PFN_vkVoidFunction(std::string_view name, PFN_vkVoidFunction real)>;

// clang-format off
/// The loader's functions that need no instance.
#define WYE_VULKAN_LOADER_FUNCTIONS(X) \
  X(EnumerateInstanceVersion) X(EnumerateInstanceLayerProperties) X(EnumerateInstanceExtensionProperties) \
  X(CreateInstance)

#define WYE_VULKAN_INSTANCE_FUNCTIONS(X) \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties) \
  X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties2) \
  X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceExternalBufferProperties) \
  X(GetPhysicalDeviceExternalSemaphoreProperties) X(CreateDevice) X(GetDeviceProcAddr)

/// Present only if VK_EXT_debug_utils is enabled.
#define WYE_VULKAN_MESSAGE_FUNCTIONS(X) \
  X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT)

/// Called only for devices with VK_KHR_cooperative_matrix. Null if the loader does not know the
/// extension.
#define WYE_VULKAN_MATRIX_FUNCTIONS(X) \
  X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)

#define WYE_VULKAN_DEVICE_FUNCTIONS(X) \
  X(DestroyDevice) X(DeviceWaitIdle) X(GetDeviceQueue) X(QueueSubmit) \
  X(AllocateMemory) X(FreeMemory) X(MapMemory) X(FlushMappedMemoryRanges) X(InvalidateMappedMemoryRanges) \
  X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory) \
  X(GetBufferDeviceAddress) \
  X(CreateShaderModule) X(DestroyShaderModule) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) \
  X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateComputePipelines) X(DestroyPipeline) \
  X(CreatePipelineCache) X(DestroyPipelineCache) X(GetPipelineCacheData) \
  X(CreateDescriptorPool) X(DestroyDescriptorPool) X(ResetDescriptorPool) X(AllocateDescriptorSets) \
  X(UpdateDescriptorSets) X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) \
  X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer) \
  X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) \
  X(CmdDispatchBase) X(CmdResetQueryPool) X(CmdWriteTimestamp) \
  X(CmdCopyQueryPoolResults) X(CreateQueryPool) X(DestroyQueryPool) \
  X(CreateSemaphore) X(DestroySemaphore) X(GetSemaphoreCounterValue) X(WaitSemaphores) X(SignalSemaphore)

/// Present only if VK_KHR_external_memory_fd or VK_KHR_external_semaphore_fd is enabled.
#define WYE_VULKAN_SHARING_FUNCTIONS(X) \
  X(GetMemoryFdKHR) X(GetSemaphoreFdKHR)
// clang-format on

#define WYE_VULKAN_MEMBER(name) base::DriverFunction<PFN_vk##name> name;
struct LoaderTable {
  base::DriverFunction<PFN_vkGetInstanceProcAddr> GetInstanceProcAddr;
  WYE_VULKAN_LOADER_FUNCTIONS(WYE_VULKAN_MEMBER)
};
struct InstanceTable {
  WYE_VULKAN_INSTANCE_FUNCTIONS(WYE_VULKAN_MEMBER)
  WYE_VULKAN_MESSAGE_FUNCTIONS(WYE_VULKAN_MEMBER)
  WYE_VULKAN_MATRIX_FUNCTIONS(WYE_VULKAN_MEMBER)
};
struct DeviceTable {
  WYE_VULKAN_DEVICE_FUNCTIONS(WYE_VULKAN_MEMBER)
  WYE_VULKAN_SHARING_FUNCTIONS(WYE_VULKAN_MEMBER)
};
#undef WYE_VULKAN_MEMBER

/// Errors: unavailable, naming the missing function.
Result<LoaderTable> load_loader(PFN_vkGetInstanceProcAddr get, const Wrap& wrap);
Result<InstanceTable> load_instance(const LoaderTable& loader, VkInstance instance, const Wrap& wrap);
Result<DeviceTable> load_device(const InstanceTable& instance, VkDevice device, const Wrap& wrap);

}  // namespace wye::vulkan
