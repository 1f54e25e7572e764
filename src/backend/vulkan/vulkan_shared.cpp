// Memory and timelines that are shared with another driver of the same silicon, as opaque files.
#include <algorithm>
#include <limits>
#include <utility>

#include "backend/vulkan/vulkan_buffer.hpp"
#include "backend/vulkan/vulkan_device.hpp"
#include "backend/vulkan/vulkan_timeline.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits memory_file = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr VkExternalSemaphoreHandleTypeFlagBits semaphore_file =
    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;

Error lacks(const VulkanDevice& device, const char* extension) {
  return Error(Errc::unsupported,
               base::text("Device '{}' does not have the extension {}.", device.info().id, extension));
}

}  // namespace

Result<bool> VulkanDevice::shares_buffers(VkExternalMemoryFeatureFlags wanted) const {
  if (!physical_.has_memory_files || !vk.GetMemoryFdKHR)
    return lacks(*this, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  const VkPhysicalDeviceExternalBufferInfo info{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
      .pNext = nullptr,
      .flags = 0,
      .usage = VulkanBuffer::usage,
      .handleType = memory_file};
  VkExternalBufferProperties properties{};
  properties.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
  instance_->vk.GetPhysicalDeviceExternalBufferProperties(physical_.handle, &info, &properties);
  const VkExternalMemoryFeatureFlags has = properties.externalMemoryProperties.externalMemoryFeatures;
  if ((has & wanted) != wanted)
    return Error(Errc::unsupported,
                 base::text("The driver of device '{}' {} no buffers as opaque files.", this->info().id,
                            wanted == VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT ? "exports" : "imports"));
  return (has & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0;
}

Result<std::shared_ptr<VulkanBuffer>> VulkanBuffer::share(std::shared_ptr<VulkanDevice> device, Bytes bytes,
                                                          device::SharedMemory* opened) {
  if (const Error* lost = device->lost()) return *lost;
  const device::BufferRequest request{.bytes = bytes, .use = device::MemoryUse::device, .account = nullptr};
  if (auto fits = device::fits(bytes, device->info()); !fits) return std::move(fits).error();
  auto dedicated = device->shares_buffers(opened ? VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT
                                                 : VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT);
  if (!dedicated) return std::move(dedicated).error();
  device::MemoryCharge charge;  // the device that created the memory is charged
  if (!opened) {
    auto charged = device->charge(request);
    if (!charged) return std::move(charged).error();
    charge = *std::move(charged);
  }
  auto buffer =
      base::make_own<VulkanBuffer>(std::move(device), bytes, device::MemoryUse::device, std::move(charge));
  buffer->is_shared_ = true;
  buffer->is_dedicated_ = *dedicated || (opened && opened->dedicated);
  if (auto bound = buffer->bind_shared(opened); !bound) return std::move(bound).error();
  if (!opened)
    if (auto cleared = buffer->clear_now(); !cleared) return std::move(cleared).error();
  return buffer;
}

Result<void> VulkanBuffer::bind_shared(device::SharedMemory* opened) {
  VulkanDevice& device = vulkan();
  if (auto made = create_handle(); !made) return made;
  VkMemoryRequirements needs{};
  device.vk.GetBufferMemoryRequirements(device.handle(), handle_, &needs);
  if (opened && opened->allocation.count < needs.size)
    return Error(
        Errc::unsupported,
        base::text("Memory of another driver ({} bytes) is smaller than device '{}' needs for a buffer "
                   "({} bytes).",
                   opened->allocation.count, device.info().id, needs.size));
  const VkMemoryDedicatedAllocateInfo dedicated{.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                                                .pNext = nullptr,
                                                .image = VK_NULL_HANDLE,
                                                .buffer = handle_};
  const void* const rest = is_dedicated_ ? &dedicated : nullptr;
  const VkExportMemoryAllocateInfo given{
      .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .pNext = rest, .handleTypes = memory_file};
  VkImportMemoryFdInfoKHR taken{};
  taken.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  taken.pNext = rest;
  taken.handleType = memory_file;
  if (opened) {
    taken.fd = opened->file.number();
    needs.size = opened->allocation.count;
  }
  auto block = opened ? device.heap().allocate_dedicated(needs, &taken)
                      : device.heap().allocate_dedicated(needs, &given);
  if (!block) return std::move(block).error();
  if (opened) opened->file.release();  // the driver owns it now
  dedicated_.splice(dedicated_.end(), *block);
  adopted_.memory = number_of(dedicated_.front().memory);
  if (const VkResult r = device.vk.BindBufferMemory(device.handle(), handle_, dedicated_.front().memory, 0);
      r != VK_SUCCESS)
    return creation_error(r, "vkBindBufferMemory");
  query_address();
  return {};
}

Result<device::SharedMemory> VulkanBuffer::file() {
  VulkanDevice& device = vulkan();
  const VkMemoryGetFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                  .pNext = nullptr,
                                  .memory = dedicated_.front().memory,
                                  .handleType = memory_file};
  int number = -1;
  if (const VkResult r = device.vk.GetMemoryFdKHR(device.handle(), &info, &number); r != VK_SUCCESS)
    return device.failed(
        r, "vkGetMemoryFdKHR",
        base::text("Device '{}' cannot export a buffer ({} bytes).", device.info().id, bytes().count));
  device::SharedMemory memory;
  memory.file = base::Descriptor(number);
  memory.allocation = Bytes{dedicated_.front().size};
  memory.dedicated = is_dedicated_;
  return memory;
}

Result<device::SharedBufferBase> VulkanDevice::create_shared(Bytes bytes) {
  auto buffer = VulkanBuffer::share(self(), bytes, nullptr);
  if (!buffer) return std::move(buffer).error();
  auto memory = (*buffer)->file();
  if (!memory) return std::move(memory).error();
  return device::SharedBufferBase{*std::move(buffer), *std::move(memory)};
}

Result<std::shared_ptr<device::BufferBase>> VulkanDevice::open_shared(device::SharedMemory& memory,
                                                                      Bytes bytes) {
  auto buffer = VulkanBuffer::share(self(), bytes, &memory);
  if (!buffer) return std::move(buffer).error();
  return std::shared_ptr<device::BufferBase>(*std::move(buffer));
}

Result<void> VulkanDevice::shares_timelines() const {
  if (!physical_.has_semaphore_files || !vk.GetSemaphoreFdKHR)
    return lacks(*this, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .pNext = nullptr,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                       .initialValue = 0};
  const VkPhysicalDeviceExternalSemaphoreInfo info{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
      .pNext = &type,
      .handleType = semaphore_file};
  VkExternalSemaphoreProperties properties{};
  properties.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES;
  instance_->vk.GetPhysicalDeviceExternalSemaphoreProperties(physical_.handle, &info, &properties);
  if ((properties.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) != 0) return {};
  return Error(Errc::unsupported,
               base::text("The driver of device '{}' exports no timeline semaphores as opaque files.",
                          this->info().id));
}

Result<std::shared_ptr<VulkanTimeline>> VulkanTimeline::share(std::shared_ptr<VulkanDevice> device) {
  if (const Error* lost = device->lost()) return *lost;
  auto timeline = base::own(new VulkanTimeline(std::move(device), SignaledBy::others));
  const VkExportSemaphoreCreateInfo given{.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
                                          .pNext = nullptr,
                                          .handleTypes = semaphore_file};
  if (auto made = timeline->create_semaphore(&given); !made) return std::move(made).error();
  timeline->pending_signals_.emplace(*timeline);
  return timeline;
}

Result<base::Descriptor> VulkanTimeline::file() {
  const VkSemaphoreGetFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                     .pNext = nullptr,
                                     .semaphore = semaphore_,
                                     .handleType = semaphore_file};
  int number = -1;
  if (const VkResult r = device().vk.GetSemaphoreFdKHR(device().handle(), &info, &number); r != VK_SUCCESS)
    return device().failed(r, "vkGetSemaphoreFdKHR",
                           base::text("Device '{}' cannot export a semaphore.", device().info().id));
  return base::Descriptor(number);
}

Result<device::SharedTimeline> VulkanDevice::create_shared_timeline() {
  if (auto shares = shares_timelines(); !shares) return std::move(shares).error();
  auto timeline = VulkanTimeline::share(self());
  if (!timeline) return std::move(timeline).error();
  auto file = (*timeline)->file();
  if (!file) return std::move(file).error();
  return device::SharedTimeline{*std::move(timeline), *std::move(file)};
}

Result<std::shared_ptr<device::Timeline>> VulkanDevice::open_shared_timeline(device::SharedTimeline&) {
  return Error(Errc::unsupported,
               base::text("Device '{}' exports semaphores to other drivers, but does not import theirs.",
                          this->info().id));
}

}  // namespace wye::vulkan
