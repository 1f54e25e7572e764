#include "backend/vulkan/vulkan_adapter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/vulkan/vulkan_device.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

AdapterType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return AdapterType::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return AdapterType::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return AdapterType::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return AdapterType::cpu;
    default: return AdapterType::other;
  }
}

Extent3 extent(const std::uint32_t (&n)[3]) { return {n[0], n[1], n[2]}; }

using Names = std::vector<std::string>;

Names extensions_of(const InstanceTable& vk, VkPhysicalDevice handle) {
  std::uint32_t count = 0;
  if (vk.EnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkExtensionProperties> list(count);
  if (vk.EnumerateDeviceExtensionProperties(handle, nullptr, &count, list.data()) < VK_SUCCESS) return {};
  list.resize(count);
  Names names;
  for (const VkExtensionProperties& one : list) names.emplace_back(one.extensionName);
  return names;
}

/// Returns the products of cooperative matrices of a device with VK_KHR_cooperative_matrix.
std::vector<VkCooperativeMatrixPropertiesKHR> cooperative_matrices_of(const InstanceTable& vk,
                                                                      VkPhysicalDevice handle) {
  const auto list_them = vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  std::uint32_t count = 0;
  if (!list_them || list_them(handle, &count, nullptr) != VK_SUCCESS) return {};
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = cooperative_matrix_properties;
  std::vector<VkCooperativeMatrixPropertiesKHR> list(count, empty);
  if (list_them(handle, &count, list.data()) < VK_SUCCESS) return {};
  list.resize(count);
  return list;
}

bool has(const Names& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Fills in the driver's description and the device's limits.
void describe_properties(const InstanceTable& vk, std::uint32_t api, PhysicalDevice& physical) {
  VkPhysicalDeviceMaintenance4Properties v13{};
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
  VkPhysicalDeviceVulkan12Properties v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  v12.pNext = api >= VK_API_VERSION_1_3 ? &v13 : nullptr;
  VkPhysicalDeviceVulkan11Properties v11{};
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  v11.pNext = &v12;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &v11;
  vk.GetPhysicalDeviceProperties2(physical.handle, &properties);
  const VkPhysicalDeviceLimits& limits = properties.properties.limits;

  AdapterInfo& info = physical.info;
  std::memcpy(info.device_uuid.data(), v11.deviceUUID, VK_UUID_SIZE);
  std::memcpy(info.driver_uuid.data(), v11.driverUUID, VK_UUID_SIZE);
  info.driver = v12.driverName;
  info.driver_version = properties.properties.driverVersion;
  physical.pipelines = {.headerSize = sizeof(VkPipelineCacheHeaderVersionOne),
                        .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                        .vendorID = properties.properties.vendorID,
                        .deviceID = properties.properties.deviceID,
                        .pipelineCacheUUID = {}};
  std::memcpy(physical.pipelines.pipelineCacheUUID, properties.properties.pipelineCacheUUID, VK_UUID_SIZE);
  if (v12.driverInfo[0] != '\0') info.driver += base::text(" {}", v12.driverInfo);

  Limits& l = info.limits;
  l.workgroup = extent(limits.maxComputeWorkGroupSize);
  l.workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  l.groups = extent(limits.maxComputeWorkGroupCount);
  l.descriptor_range = Bytes{limits.maxStorageBufferRange};
  l.shared_memory = Bytes{limits.maxComputeSharedMemorySize};
  l.parameter_bytes = Bytes{limits.maxPushConstantsSize};
  l.bound_buffers =
      std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
  l.offset_alignment = static_cast<std::uint32_t>(limits.minStorageBufferOffsetAlignment);
  l.subgroup_size = v11.subgroupSize;
  // A buffer needs a single allocation.
  physical.largest_allocation = v11.maxMemoryAllocationSize;
  if (api >= VK_API_VERSION_1_3)
    physical.largest_allocation = std::min<std::uint64_t>(physical.largest_allocation, v13.maxBufferSize);
  physical.most_allocations = limits.maxMemoryAllocationCount;
  physical.atom = limits.nonCoherentAtomSize;
  physical.clock.period = limits.timestampPeriod;
  physical.subgroup_operations =
      (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 ? v11.subgroupSupportedOperations : 0;
}

void describe_memory(const InstanceTable& vk, const VulkanOptions& options, PhysicalDevice& physical) {
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  vk.GetPhysicalDeviceMemoryProperties2(physical.handle, &memory);
  physical.memory = memory.memoryProperties;
  physical.types = choose_memory_types(physical.memory, true);
  physical.unified =
      options.host_visible && !physical.types.device.empty() &&
      (physical.info.type == AdapterType::integrated || physical.info.type == AdapterType::cpu) &&
      is_read_in_place(physical.memory, physical.types.device.front());
  if (!physical.unified) physical.types = choose_memory_types(physical.memory, false);
  if (physical.types.device.empty()) return;
  const VkMemoryType& type = physical.memory.memoryTypes[physical.types.device.front()];
  const std::uint64_t heap = physical.memory.memoryHeaps[type.heapIndex].size;
  physical.info.memory = Bytes{heap};
  physical.info.limits.buffer = Bytes{std::min(heap, physical.largest_allocation)};
}

std::string why_unusable(const PhysicalDevice& physical, const FeatureChain& offered,
                         const std::vector<VkQueueFamilyProperties>& families, const AdoptedDevice& adopted) {
  if (const std::string missing = missing_of(offered); !missing.empty())
    return adopted.created
               ? base::text("The application created its device of '{}' without {}, which wye needs.",
                            physical.info.name, missing)
               : base::text("Device '{}' does not offer {}, which wye needs.", physical.info.name, missing);
  if (adopted.created && (physical.queue_family >= families.size() ||
                          (families[physical.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0))
    return base::text("Queue family {} of '{}' ({} families) does not support compute.",
                      physical.queue_family, physical.info.name, families.size());
  if (physical.queue_family == families.size())
    return base::text("Device '{}' has no queue family that supports compute.", physical.info.name);
  if (physical.types.device.empty() || physical.types.transfer.empty())
    return base::text("Device '{}' has no memory type that wye can use.", physical.info.name);
  return {};
}

}  // namespace

std::uint32_t choose_queue_family(const VkQueueFamilyProperties* families, std::uint32_t count) {
  std::uint32_t any = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (families[i].queueCount == 0 || (flags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if ((flags & VK_QUEUE_GRAPHICS_BIT) == 0) return i;
    if (any == count) any = i;
  }
  return any;
}

PhysicalDevice describe(const InstanceTable& vk, VkPhysicalDevice handle, std::string id,
                        const VulkanOptions& options, const AdoptedDevice& adopted) {
  PhysicalDevice physical;
  physical.handle = handle;
  AdapterInfo& info = physical.info;
  info.id = std::move(id);
  info.backend = "vulkan";

  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  vk.GetPhysicalDeviceProperties2(handle, &properties);
  // The application may have created its instance for the minimum version only.
  const std::uint32_t offered_api = properties.properties.apiVersion;
  const std::uint32_t api =
      adopted.created ? std::min(offered_api, VK_MAKE_API_VERSION(0, 1, 2, 0)) : offered_api;
  info.name = properties.properties.deviceName;
  info.type = type_of(properties.properties.deviceType);
  info.api = base::text("Vulkan {}.{}.{}", VK_API_VERSION_MAJOR(offered_api),
                        VK_API_VERSION_MINOR(offered_api), VK_API_VERSION_PATCH(offered_api));
  if (api < VK_API_VERSION_1_2) {
    info.reason = base::text("Device '{}' offers {}; wye needs Vulkan 1.2.", info.name, info.api);
    return physical;
  }
  physical.spirv_version = api >= VK_API_VERSION_1_3 ? 0x00010600 : 0x00010500;
  describe_properties(vk, api, physical);
  describe_memory(vk, options, physical);

  const Names extensions =
      adopted.created
          ? Names(adopted.created->ppEnabledExtensionNames,
                  adopted.created->ppEnabledExtensionNames + adopted.created->enabledExtensionCount)
          : extensions_of(vk, handle);
  physical.has_memory_budget = has(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  physical.has_memory_files = has(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  physical.has_semaphore_files = has(extensions, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  FeatureChain offered;
  if (adopted.created) {
    offered = enabled_in(*adopted.created);
  } else {
    offered.has_atomic_float = has(extensions, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
    offered.has_cooperative_matrix = has(extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    vk.GetPhysicalDeviceFeatures2(handle, offered.link());
  }
  physical.enabled = wanted_of(offered);
  Extent3& matrix = info.limits.cooperative_matrix;
  if (physical.enabled.cooperative_matrix.cooperativeMatrix)
    matrix = cooperative_matrix_of(cooperative_matrices_of(vk, handle));
  info.features = features_of(physical.enabled, physical.subgroup_operations, matrix);

  std::uint32_t families = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &families, nullptr);
  std::vector<VkQueueFamilyProperties> list(families);
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &families, list.data());
  physical.queue_family = adopted.created ? adopted.queue_family : choose_queue_family(list.data(), families);
  if (physical.queue_family < families) {
    info.queues = list[physical.queue_family].queueCount;
    physical.clock.valid_bits = list[physical.queue_family].timestampValidBits;
  }

  info.reason = why_unusable(physical, offered, list, adopted);
  info.usable = info.reason.empty();
  return physical;
}

Result<std::shared_ptr<device::DeviceBase>> VulkanAdapter::open() {
  auto device = VulkanDevice::open(instance_, physical_, options_);
  if (!device) return std::move(device).error();
  return std::shared_ptr<device::DeviceBase>(std::move(*device));
}

}  // namespace wye::vulkan
