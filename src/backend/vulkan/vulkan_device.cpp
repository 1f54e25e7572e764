#include "backend/vulkan/vulkan_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/vulkan/vulkan_buffer.hpp"
#include "backend/vulkan/vulkan_error.hpp"
#include "backend/vulkan/vulkan_executable.hpp"
#include "backend/vulkan/vulkan_lane.hpp"
#include "backend/vulkan/vulkan_stamps.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {

VulkanDevice::VulkanDevice(std::shared_ptr<VulkanInstance> instance, const PhysicalDevice& physical,
                           const VulkanOptions& options)
    : DeviceBase(physical.info),
      instance_(std::move(instance)),
      physical_(physical),
      options_(options),
      lost_error_(Errc::device_lost,
                  base::text("Device '{}' ({}) is lost.", physical.info.id, physical.info.name)) {}

Result<std::shared_ptr<VulkanDevice>> VulkanDevice::open(std::shared_ptr<VulkanInstance> instance,
                                                         const PhysicalDevice& physical,
                                                         const VulkanOptions& options) {
  auto device = base::own(new VulkanDevice(std::move(instance), physical, options));
  if (auto created = device->create(); !created) return std::move(created).error();
  return device;
}

Result<void> VulkanDevice::create() {
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                      .pNext = nullptr,
                                      .flags = 0,
                                      .queueFamilyIndex = physical_.queue_family,
                                      .queueCount = 1,
                                      .pQueuePriorities = &priority};
  std::vector<const char*> extensions;
  if (physical_.has_memory_files) extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (physical_.has_semaphore_files) extensions.push_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  if (physical_.has_memory_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (physical_.enabled.has_atomic_float) extensions.push_back(VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
  if (physical_.enabled.has_cooperative_matrix)
    extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = physical_.enabled.link();
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const InstanceTable& driver = instance_->vk;
  VkDevice device = VK_NULL_HANDLE;
  if (const VkResult r = driver.CreateDevice(physical_.handle, &info, nullptr, &device); r != VK_SUCCESS) {
    const std::string sentence =
        base::text("The driver of '{}' ({}) cannot open the device.", this->info().id, this->info().name);
    return r == VK_ERROR_DEVICE_LOST ? lose("vkCreateDevice") : failure(r, "vkCreateDevice", sentence);
  }
  if (auto used = use(device, VK_NULL_HANDLE, {}); !used) {
    // The device has no function table yet, so vkDestroyDevice comes from the instance.
    if (const auto destroy = driver.GetDeviceProcAddr(device, "vkDestroyDevice"))
      reinterpret_cast<PFN_vkDestroyDevice>(destroy)(device, nullptr);
    return used;
  }
  return {};
}

/// Begins to use a VkDevice, with `queue` or, if it is null, the first queue of its family.
Result<void> VulkanDevice::use(VkDevice device, VkQueue queue, const NativeLock& lock) {
  auto table = load_device(instance_->vk, device, instance_->wrap);
  if (!table) return std::move(table).error();
  vk = *table;
  handle_ = device;
  if (queue == VK_NULL_HANDLE) vk.GetDeviceQueue(handle_, physical_.queue_family, 0, &queue);
  queue_.emplace(*this, queue, instance_->messages(), lock);
  memory_.emplace(*this);
  clearing_.emplace(*this);
  return {};
}

VulkanDevice::~VulkanDevice() {
  waiter_.end();
  if (handle_ == VK_NULL_HANDLE) return;
  // An adopted device may have other queues in use. The lanes have waited for their own work.
  if (!lost() && !is_adopted_) vk.DeviceWaitIdle(handle_);
  clearing_.reset();
  memory_.reset();
  queue_.reset();
  if (const VkPipelineCache last = pipelines_) vk.DestroyPipelineCache(handle_, last, nullptr);
  if (!is_adopted_) vk.DestroyDevice(handle_, nullptr);
}

std::span<const std::string_view> VulkanDevice::languages() const noexcept {
  static constexpr std::string_view languages[] = {"spirv"};
  return languages;
}

MemoryInfo VulkanDevice::memory() {
  const std::uint32_t heap = physical_.memory.memoryTypes[physical_.types.device.front()].heapIndex;
  const VulkanMemory::Use use = memory_->use_of(heap);
  MemoryInfo memory;
  memory.total = Bytes{physical_.memory.memoryHeaps[heap].size};
  memory.in_use = silicon()->account()->held();
  memory.available = memory.total - std::min(memory.in_use, memory.total);
  memory.spare = Bytes{use.held - use.taken};
  if (physical_.has_memory_budget && !lost()) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
    budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
    VkPhysicalDeviceMemoryProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
    properties.pNext = &budget;
    instance_->vk.GetPhysicalDeviceMemoryProperties2(physical_.handle, &properties);
    const std::uint64_t all = budget.heapBudget[heap], gone = budget.heapUsage[heap];
    // Allocated blocks may have free ranges, which are available too.
    memory.available = Bytes{all > gone ? all - gone : 0} + memory.spare;
  }
  return memory;
}

void VulkanDevice::release_spare_memory() noexcept {
  for (std::uint32_t heap = 0; heap < physical_.memory.memoryHeapCount; ++heap)
    (void)memory_->free_spare_blocks(heap);
}

Result<VkPipelineCache> VulkanDevice::pipelines() {
  if (const VkPipelineCache made = pipelines_) return made;
  return make_pipelines({});
}

/// Several threads may create the cache at the same time. The first cache stays.
Result<VkPipelineCache> VulkanDevice::make_pipelines(std::span<const std::byte> code) {
  const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                       .pNext = nullptr,
                                       .flags = 0,
                                       .initialDataSize = code.size(),
                                       .pInitialData = code.empty() ? nullptr : code.data()};
  VkPipelineCache made = VK_NULL_HANDLE;
  const VkResult r = vk.CreatePipelineCache(handle_, &info, nullptr, &made);
  if (r == VK_ERROR_DEVICE_LOST) return lose("vkCreatePipelineCache");
  if (r != VK_SUCCESS) return VkPipelineCache{VK_NULL_HANDLE};
  VkPipelineCache before = VK_NULL_HANDLE;
  if (pipelines_.compare_exchange_strong(before, made)) return made;
  vk.DestroyPipelineCache(handle_, made, nullptr);
  return before;
}

Result<std::vector<std::byte>> VulkanDevice::driver_code() {
  std::vector<std::byte> code;
  const VkPipelineCache cache = pipelines_;
  if (cache == VK_NULL_HANDLE) return code;
  VkResult r = VK_INCOMPLETE;
  // The cache may grow between the two calls.
  for (int tries = 0; r == VK_INCOMPLETE && tries < 4; ++tries) {
    if (const Error* gone = lost()) return *gone;
    std::size_t bytes = 0;
    r = vk.GetPipelineCacheData(handle_, cache, &bytes, nullptr);
    if (r != VK_SUCCESS) break;
    code.resize(bytes);
    r = vk.GetPipelineCacheData(handle_, cache, &bytes, code.data());
    code.resize(std::min(bytes, code.size()));
  }
  if (r == VK_SUCCESS) return code;
  if (r == VK_INCOMPLETE) return std::vector<std::byte>();
  return failed(r, "vkGetPipelineCacheData",
                base::text("The driver of device '{}' cannot return its compiled kernels.", info().id));
}

Result<void> VulkanDevice::preload(std::span<const std::byte> code) {
  if (const Error* gone = lost()) return *gone;
  // Drivers have crashed on data of other drivers.
  if (code.size() < sizeof(physical_.pipelines) ||
      std::memcmp(code.data(), &physical_.pipelines, sizeof(physical_.pipelines)) != 0)
    return Error(Errc::corrupt,
                 base::text("The data stored for the driver of device '{}' was not written by this driver.",
                            info().id));
  if (pipelines_ != VK_NULL_HANDLE) return {};
  auto made = make_pipelines(code);
  if (!made) return std::move(made).error();
  return {};
}

Result<std::shared_ptr<device::BufferBase>> VulkanDevice::create_buffer(
    const device::BufferRequest& request) {
  auto buffer = VulkanBuffer::create(self(), request);
  if (!buffer) return std::move(buffer).error();
  return std::shared_ptr<device::BufferBase>(std::move(*buffer));
}

Result<std::shared_ptr<device::ExecutableBase>> VulkanDevice::create_executable(
    const device::Artefact& artefact) {
  auto executable = VulkanExecutable::create(self(), artefact);
  if (!executable) return std::move(executable).error();
  return std::shared_ptr<device::ExecutableBase>(std::move(*executable));
}

Result<std::unique_ptr<device::LaneBase>> VulkanDevice::create_lane(const device::LaneOptions&) {
  auto lane = VulkanLane::create(self());
  if (!lane) return std::move(lane).error();
  return std::unique_ptr<device::LaneBase>(std::move(*lane));
}

Result<std::shared_ptr<device::StampsBase>> VulkanDevice::create_stamps() {
  return VulkanStamps::create(self());
}

Result<std::shared_ptr<device::Timeline>> VulkanDevice::create_timeline() {
  auto timeline = VulkanTimeline::create(self(), VulkanTimeline::SignaledBy::host);
  if (!timeline) return std::move(timeline).error();
  return std::shared_ptr<device::Timeline>(std::move(*timeline));
}

Error VulkanDevice::failed(VkResult result, const char* api, std::string sentence, Place place) {
  if (result == VK_ERROR_DEVICE_LOST) return lose(api, place);
  return failure(result, api, std::move(sentence), place);
}

const Error& VulkanDevice::lose(const char* api, Place place) noexcept {
  {
    const std::lock_guard lock(lost_mutex_);
    if (!lost()) {
      try {
        lost_error_ = failure(VK_ERROR_DEVICE_LOST, api, lost_error_.sentence(), place);
      } catch (...) {  // no memory for the details; the device is lost nevertheless
      }
      lost_.store(&lost_error_, std::memory_order_release);
    }
  }
  pending_.drop_all();
  return lost_error_;
}

}  // namespace wye::vulkan
