#pragma once
/// Physical devices: their properties, and how they are opened.
#include <wye/device/adapter.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "backend/vulkan/vulkan_features.hpp"
#include "backend/vulkan/vulkan_loader.hpp"
#include "backend/vulkan/vulkan_memory_types.hpp"
#include "backend/vulkan/vulkan_options.hpp"
#include "backend/vulkan/vulkan_stamps.hpp"
#include "device/backend.hpp"
#include "device/device.hpp"

namespace wye::inline v0::vulkan {

/// A physical device and its properties.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  AdapterInfo info;
  FeatureChain enabled;  ///< the features that are enabled when it is opened
  VkSubgroupFeatureFlags subgroup_operations = 0;
  std::uint32_t spirv_version = 0;  ///< newest supported, as in a module's header
  std::uint32_t queue_family = 0;
  QueueClock clock;  ///< of a queue of that family
  VkPhysicalDeviceMemoryProperties memory{};
  MemoryTypes types;
  bool unified = false;    ///< host and device share their memory
  std::uint64_t atom = 1;  ///< non-coherent memory is flushed in multiples of this
  std::uint64_t largest_allocation = 0;
  std::uint32_t most_allocations = 0;
  bool has_memory_budget = false;
  bool has_memory_files = false;                ///< VK_KHR_external_memory_fd
  bool has_semaphore_files = false;             ///< VK_KHR_external_semaphore_fd
  VkPipelineCacheHeaderVersionOne pipelines{};  ///< the header of pipeline caches of the driver
};

/// How the application created a device that wye adopts.
struct AdoptedDevice {
  const VkDeviceCreateInfo* created = nullptr;  ///< null: wye creates the device
  std::uint32_t queue_family = 0;
};
/// Queries a driver about one of its devices. `info.usable` and `info.reason` report whether wye
/// can use it.
PhysicalDevice describe(const InstanceTable& vk, VkPhysicalDevice handle, std::string id,
                        const VulkanOptions& options, const AdoptedDevice& adopted = {});

/// Adopts a device that the application has created. Checks its handles and features first.
/// Errors: invalid_argument (a handle is null or belongs to another instance), unsupported (a
///         required feature is off).
Result<device::Discovered> adopt_device(const NativeDevice& native, std::string id,
                                        const VulkanOptions& options);

/// Returns a queue family with compute but without graphics, to avoid waits for a desktop's
/// drawing. If there is none, returns any family with compute, otherwise `count`.
std::uint32_t choose_queue_family(const VkQueueFamilyProperties* families, std::uint32_t count);

/// Threads: thread-safe.
class VulkanAdapter final : public device::Adapter {
 public:
  VulkanAdapter(std::shared_ptr<VulkanInstance> instance, PhysicalDevice physical, VulkanOptions options)
      : instance_(std::move(instance)), physical_(std::move(physical)), options_(std::move(options)) {}
  const AdapterInfo& info() const noexcept override { return physical_.info; }
  Result<std::shared_ptr<device::DeviceBase>> open() override;
  bool can_reopen() const noexcept override { return true; }

 private:
  std::shared_ptr<VulkanInstance> instance_;
  PhysicalDevice physical_;
  VulkanOptions options_;
};

}  // namespace wye::vulkan
