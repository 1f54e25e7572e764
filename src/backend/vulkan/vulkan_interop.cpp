// Objects that the application lends to wye, and objects of wye that the application uses.
#include <algorithm>
#include <utility>
#include <vector>

#include "backend/vulkan/vulkan_adapter.hpp"
#include "backend/vulkan/vulkan_buffer.hpp"
#include "backend/vulkan/vulkan_device.hpp"
#include "backend/vulkan/vulkan_timeline.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

/// The adapter of an adopted device. It can be opened several times.
class AdoptedAdapter final : public device::Adapter {
 public:
  AdoptedAdapter(std::shared_ptr<VulkanInstance> instance, PhysicalDevice physical, VulkanOptions options,
                 NativeDevice host)
      : instance_(std::move(instance)),
        physical_(std::move(physical)),
        options_(std::move(options)),
        native_(std::move(host)) {}
  const AdapterInfo& info() const noexcept override { return physical_.info; }
  Result<std::shared_ptr<device::DeviceBase>> open() override {
    auto device = VulkanDevice::adopt(instance_, physical_, options_, native_);
    if (!device) return std::move(device).error();
    return std::shared_ptr<device::DeviceBase>(*std::move(device));
  }

 private:
  std::shared_ptr<VulkanInstance> instance_;
  PhysicalDevice physical_;
  VulkanOptions options_;
  NativeDevice native_;
};

}  // namespace

Result<device::Discovered> adopt_device(const NativeDevice& native, std::string id,
                                        const VulkanOptions& options) {
  const struct {
    bool is_missing;
    const char* name;
  } parts[] = {{native.instance == 0, "instance"},
               {native.physical == 0, "physical device"},
               {native.device == 0, "device"},
               {native.created == nullptr, "VkDeviceCreateInfo, which lists the enabled features"}};
  for (const auto& part : parts)
    if (part.is_missing)
      return Error(Errc::invalid_argument,
                   base::text("The device adopted as '{}' comes without its {}.", id, part.name));
  auto opened = VulkanInstance::adopt(options, handle_of<VkInstance>(native.instance),
                                      reinterpret_cast<PFN_vkGetInstanceProcAddr>(native.entry_points));
  if (!opened) return std::move(opened).error();
  const std::shared_ptr<VulkanInstance> instance = *std::move(opened);
  const auto wanted = handle_of<VkPhysicalDevice>(native.physical);
  std::uint32_t count = 0;
  std::vector<VkPhysicalDevice> all;
  if (instance->vk.EnumeratePhysicalDevices(instance->handle, &count, nullptr) == VK_SUCCESS) {
    all.resize(count);
    if (instance->vk.EnumeratePhysicalDevices(instance->handle, &count, all.data()) != VK_SUCCESS) count = 0;
    all.resize(count);
  }
  if (std::find(all.begin(), all.end(), wanted) == all.end())
    return Error(
        Errc::invalid_argument,
        base::text("The physical device adopted as '{}' is not one of the {} of its instance.", id, count));
  const AdoptedDevice created{.created = static_cast<const VkDeviceCreateInfo*>(native.created),
                              .queue_family = native.queue_family};
  const VkDeviceQueueCreateInfo* const queues = created.created->pQueueCreateInfos;
  if (std::none_of(queues, queues + created.created->queueCreateInfoCount,
                   [&](const VkDeviceQueueCreateInfo& q) {
                     return q.queueFamilyIndex == native.queue_family && q.queueCount != 0;
                   }))
    return Error(Errc::invalid_argument,
                 base::text("The device adopted as '{}' was created without a queue of family {}.", id,
                            native.queue_family));
  PhysicalDevice physical = describe(instance->vk, wanted, std::move(id), options, created);
  if (!physical.info.usable) return Error(Errc::unsupported, physical.info.reason);
  NativeDevice host = native;
  host.created = nullptr;  // the application may free it now
  device::Discovered found;
  found.info = physical.info;
  found.adapter = std::make_shared<AdoptedAdapter>(instance, std::move(physical), options, std::move(host));
  return found;
}

Result<std::shared_ptr<VulkanDevice>> VulkanDevice::adopt(std::shared_ptr<VulkanInstance> instance,
                                                          const PhysicalDevice& physical,
                                                          const VulkanOptions& options,
                                                          const NativeDevice& host) {
  auto device = base::own(new VulkanDevice(std::move(instance), physical, options));
  device->is_adopted_ = true;
  if (auto used = device->use(handle_of<VkDevice>(host.device), handle_of<VkQueue>(host.queue), host.lock);
      !used)
    return std::move(used).error();
  return device;
}

NativeDevice VulkanDevice::native_device() {
  NativeDevice native{.backend = "vulkan"};
  native.instance = number_of(instance_->handle);
  native.physical = number_of(physical_.handle);
  native.device = number_of(handle_);
  native.queue = number_of(queue_->handle());
  native.queue_family = physical_.queue_family;
  native.lock = queue_->lock_for_others(is_adopted_);
  native.entry_points = reinterpret_cast<void (*)()>(instance_->entry_points);
  return native;
}

NativeMemory VulkanDevice::native_memory(device::BufferBase& buffer) {
  return static_cast<VulkanBuffer&>(buffer).native();
}

NativeMemory VulkanBuffer::native() const {
  NativeMemory native = adopted_;
  native.backend = "vulkan";
  native.buffer = number_of(handle_);
  native.address = address_;
  native.bytes = bytes();
  if (memory_.block) {
    native.memory = number_of(memory_.block->memory);
    native.offset = memory_.offset;
  }
  return native;
}

Result<NativePoint> VulkanDevice::native_point(device::Timeline& timeline, std::uint64_t value) {
  const VkSemaphore semaphore = static_cast<VulkanTimeline&>(timeline).semaphore();
  if (semaphore == VK_NULL_HANDLE)
    return Error(Errc::unsupported,
                 base::text("A timeline of device '{}' that the host signals has no semaphore.", info().id));
  NativePoint native{.backend = "vulkan"};
  native.object = number_of(semaphore);
  native.value = value;
  return native;
}

Result<void> VulkanDevice::follow(std::uint64_t, device::Timeline&, std::uint64_t) {
  return Error(
      Errc::unsupported,
      base::text("Submissions of the application wait for device '{}' with the semaphore of the point.",
                 info().id));
}

Result<std::shared_ptr<device::BufferBase>> VulkanDevice::adopt_memory(const NativeMemory& memory,
                                                                       Release release) {
  auto buffer = VulkanBuffer::adopt(self(), memory, std::move(release));
  if (!buffer) return std::move(buffer).error();
  return std::shared_ptr<device::BufferBase>(*std::move(buffer));
}

Result<std::shared_ptr<VulkanBuffer>> VulkanBuffer::adopt(std::shared_ptr<VulkanDevice> device,
                                                          const NativeMemory& memory, Release release) {
  auto buffer = base::make_own<VulkanBuffer>(std::move(device), memory.bytes, device::MemoryUse::device);
  if (auto used = buffer->use(memory); !used) return std::move(used).error();
  buffer->release_ = std::move(release);
  return buffer;
}

Result<void> VulkanBuffer::use(const NativeMemory& memory) {
  VulkanDevice& device = vulkan();
  const auto refused = [&](std::string what) {
    return Error(Errc::invalid_argument,
                 base::text("Memory adopted by device '{}' {}.", device.info().id, what));
  };
  if (memory.buffer == 0 && memory.memory == 0) return refused("is neither a VkBuffer nor a VkDeviceMemory");
  if (memory.buffer != 0) {
    adopted_ = memory;
    handle_ = handle_of<VkBuffer>(memory.buffer);
  } else if (auto created = create_handle(); !created) {
    return created;
  }
  VkMemoryRequirements needs{};
  device.vk.GetBufferMemoryRequirements(device.handle(), handle_, &needs);
  if (memory.buffer != 0 && needs.size < memory.bytes.count)
    return refused(base::text("({} bytes) exceeds its VkBuffer ({} bytes)", memory.bytes.count, needs.size));
  if (memory.buffer == 0) {
    if (memory.offset % needs.alignment != 0)
      return refused(
          base::text("begins at byte {}, which is not a multiple of {}", memory.offset, needs.alignment));
    adopted_.memory = memory.memory;
    adopted_.offset = memory.offset;
    if (const VkResult r = device.vk.BindBufferMemory(
            device.handle(), handle_, handle_of<VkDeviceMemory>(memory.memory), memory.offset);
        r != VK_SUCCESS)
      return creation_error(r, "vkBindBufferMemory");
  }
  query_address();
  return {};
}

Result<std::shared_ptr<device::Timeline>> VulkanDevice::adopt_timeline(const NativePoint& point) {
  if (point.object == 0)
    return Error(Errc::invalid_argument,
                 base::text("A point adopted by device '{}' has no semaphore.", info().id));
  return std::shared_ptr<device::Timeline>(
      VulkanTimeline::adopt(self(), handle_of<VkSemaphore>(point.object)));
}

}  // namespace wye::vulkan
