#pragma once
/// A physical device: what its driver says of it, and the door to opening it.
#include <wye/device/adapter.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "backend/vulkan/vulkan_features.hpp"
#include "backend/vulkan/vulkan_loader.hpp"
#include "backend/vulkan/vulkan_memory_types.hpp"
#include "backend/vulkan/vulkan_options.hpp"
#include "device/backend.hpp"
#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// What is known of a physical device.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  AdapterInfo info;
  FeatureChain enabled;  ///< what is switched on when it is opened
  VkSubgroupFeatureFlags subgroup_operations = 0;
  std::uint32_t spirv_version = 0;  ///< newest it takes, as in a module's header
  std::uint32_t queue_family = 0;
  VkPhysicalDeviceMemoryProperties memory{};
  MemoryTypes types;
  bool unified = false;    ///< host and device share their memory
  std::uint64_t atom = 1;  ///< ranges of memory that is not coherent are flushed in multiples of this
  std::uint64_t largest_allocation = 0;
  std::uint32_t most_allocations = 0;
  bool has_memory_budget = false;
  bool has_memory_files = false;                ///< VK_KHR_external_memory_fd
  bool has_semaphore_files = false;             ///< VK_KHR_external_semaphore_fd
  VkPipelineCacheHeaderVersionOne pipelines{};  ///< how what the driver stores of pipelines begins
};

/// Asks a driver about one of its devices. `info.usable` and `info.reason` say whether wye can use it.
/// Of a device that a host has made already, what it made it with and the family of its queue narrow that down.
struct Made {
  const VkDeviceCreateInfo* with = nullptr;
  std::uint32_t queue_family = 0;
};
PhysicalDevice describe(const InstanceTable& vk, VkPhysicalDevice handle, std::string id,
                        const VulkanOptions& options, const Made& made = {});

/// A device that the host has made, with the adapter that gives it: the first lines of what can be wrong with it are here.
/// Errors: invalid_argument (what is null, or does not belong together), unsupported (what it was made without).
Result<device::Discovered> adopt_device(const NativeDevice& native, std::string id,
                                        const VulkanOptions& options);

/// A queue family that computes and does nothing else, if there is one, so that a desktop's drawing is not
/// waited for; else any that computes. As many as there are families where none does.
std::uint32_t choose_queue_family(const VkQueueFamilyProperties* families, std::uint32_t count);

/// Threads: thread-safe.
class VulkanAdapter final : public device::Adapter {
 public:
  VulkanAdapter(std::shared_ptr<VulkanInstance> instance, PhysicalDevice physical, VulkanOptions options)
      : instance_(std::move(instance)), physical_(std::move(physical)), options_(std::move(options)) {}
  const AdapterInfo& info() const noexcept override { return physical_.info; }
  Result<std::shared_ptr<device::DeviceBase>> open() override;

 private:
  std::shared_ptr<VulkanInstance> instance_;
  PhysicalDevice physical_;
  VulkanOptions options_;
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
