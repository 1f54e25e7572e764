#include "backend/vulkan/vulkan_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {

Result<std::shared_ptr<VulkanBuffer>> VulkanBuffer::create(std::shared_ptr<VulkanDevice> device,
                                                           const device::BufferRequest& request) {
  if (const Error* lost = device->lost()) return *lost;
  if (auto fits = device::fits(request.bytes, device->info()); !fits) return std::move(fits).error();
  auto charge = device->charge(request);
  if (!charge) return std::move(charge).error();
  auto buffer =
      base::make_own<VulkanBuffer>(std::move(device), request.bytes, request.use, *std::move(charge));
  if (auto bound = buffer->bind(request.only_spare); !bound) return std::move(bound).error();
  if (!request.is_overwritten)
    if (auto cleared = buffer->clear(); !cleared) return std::move(cleared).error();
  return buffer;
}

VulkanBuffer::VulkanBuffer(std::shared_ptr<VulkanDevice> device, Bytes bytes, device::MemoryUse use,
                           device::MemoryCharge charge)
    : BufferBase(std::move(device), bytes, std::move(charge)), use_(use) {}

/// Creates a VkBuffer of this size, without memory.
Result<void> VulkanBuffer::create_handle() {
  VulkanDevice& device = vulkan();
  const VkExternalMemoryBufferCreateInfo external{
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
      .pNext = nullptr,
      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .pNext = is_shared_ ? &external : nullptr,
                                .flags = 0,
                                // A VkBuffer cannot be empty, and vkCmdFillBuffer clears whole words.
                                .size = std::max<std::uint64_t>((bytes().count + 3) / 4 * 4, 4),
                                .usage = usage,
                                .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
                                .queueFamilyIndexCount = 0,
                                .pQueueFamilyIndices = nullptr};
  VkBuffer made = VK_NULL_HANDLE;
  if (const VkResult r = device.vk.CreateBuffer(device.handle(), &info, nullptr, &made); r != VK_SUCCESS)
    return creation_error(r, "vkCreateBuffer");
  handle_ = made;
  return {};
}

Error VulkanBuffer::creation_error(VkResult result, const char* api) {
  return vulkan().failed(
      result, api,
      base::text("Device '{}' cannot create a buffer ({} bytes) now.", vulkan().info().id, bytes().count));
}

void VulkanBuffer::query_address() {
  const VkBufferDeviceAddressInfo address{
      .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .pNext = nullptr, .buffer = handle_};
  address_ = vulkan().vk.GetBufferDeviceAddress(vulkan().handle(), &address);
}

Result<void> VulkanBuffer::bind(bool only_spare) {
  VulkanDevice& device = vulkan();
  if (auto made = create_handle(); !made) return made;
  VkMemoryRequirements needs{};
  device.vk.GetBufferMemoryRequirements(device.handle(), handle_, &needs);
  auto memory = device.heap().allocate_range(needs, use_, only_spare);
  if (!memory) return std::move(memory).error();
  memory_ = *memory;
  if (const VkResult r =
          device.vk.BindBufferMemory(device.handle(), handle_, memory_.block->memory, memory_.offset);
      r != VK_SUCCESS)
    return creation_error(r, "vkBindBufferMemory");
  query_address();

  const bool shared = use_ == device::MemoryUse::transfer || device.physical().unified;
  mapped_ = shared ? memory_.host() : nullptr;
  const VkMemoryPropertyFlags properties =
      device.physical().memory.memoryTypes[memory_.block->type].propertyFlags;
  coherent_ = (properties & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0 &&
              (use_ == device::MemoryUse::transfer || device.options().host_coherent);
  return {};
}

Result<void> VulkanBuffer::clear() {
  if (mapped_) {
    std::memset(mapped_, 0, bytes().count);
    return flush(0, bytes().count);
  }
  auto filled = vulkan().clearing().clear(handle_);
  if (!filled) return std::move(filled).error();
  cleared_ = *filled;
  return {};
}

Result<void> VulkanBuffer::clear_now() {
  if (auto cleared = clear(); !cleared) return cleared;
  if (cleared_.done == VK_NULL_HANDLE || vulkan().clearing().wait(cleared_)) return {};
  return Error(Errc::unavailable,
               base::text("The driver of device '{}' does not report that it has cleared a "
                          "shared buffer ({} bytes).",
                          vulkan().info().id, bytes().count));
}

VulkanBuffer::~VulkanBuffer() {
  VulkanDevice& device = vulkan();
  // The device may still write a buffer that was never used. If its driver does not tell, it stays.
  if (cleared_.done != VK_NULL_HANDLE && !device.clearing().wait(cleared_)) return;
  if (handle_ != VK_NULL_HANDLE && adopted_.buffer == 0)
    device.vk.DestroyBuffer(device.handle(), handle_, nullptr);
  if (memory_.block) device.heap().free_range(memory_);
  device.heap().free_dedicated(dedicated_);
  if (release_) release_();
}

Result<void> VulkanBuffer::sync(std::uint64_t offset, std::uint64_t bytes, bool to_device) {
  if (coherent_ || bytes == 0) return {};
  VulkanDevice& device = vulkan();
  const std::uint64_t atom = device.physical().atom;
  const std::uint64_t first = (memory_.offset + offset) & ~(atom - 1);
  const std::uint64_t last = (memory_.offset + offset + bytes + atom - 1) & ~(atom - 1);
  const VkMappedMemoryRange range{.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                  .pNext = nullptr,
                                  .memory = memory_.block->memory,
                                  .offset = first,
                                  .size = last >= memory_.block->size ? VK_WHOLE_SIZE : last - first};
  const VkResult r = to_device ? device.vk.FlushMappedMemoryRanges(device.handle(), 1, &range)
                               : device.vk.InvalidateMappedMemoryRanges(device.handle(), 1, &range);
  if (r == VK_SUCCESS) return {};
  return device.failed(
      r, to_device ? "vkFlushMappedMemoryRanges" : "vkInvalidateMappedMemoryRanges",
      base::text("A copy ({} bytes) between host and device '{}' failed.", bytes, device.info().id));
}

void VulkanBuffer::add_read(Read read) {
  const std::lock_guard lock(reads_mutex_);
  reads_.push_back(std::move(read));
  pending_reads_.store(reads_.size(), std::memory_order_release);
}

Result<void> VulkanBuffer::complete_reads(const void* owner) {
  const std::lock_guard lock(reads_mutex_);
  return do_reads(owner);
}

/// Performs and removes the reads of `owner`, in order. Stops at the first failure.
Result<void> VulkanBuffer::do_reads(const void* owner) {
  for (auto read = reads_.begin(); read != reads_.end();) {
    if (read->owner != owner) {
      ++read;
      continue;
    }
    if (auto seen = invalidate(read->offset, read->bytes); !seen) return seen;
    std::memcpy(read->target, mapped_ + read->offset, read->bytes);
    read = reads_.erase(read);
    pending_reads_.store(reads_.size(), std::memory_order_release);
  }
  return {};
}

void VulkanBuffer::discard_reads(const void* owner) noexcept {
  const std::lock_guard lock(reads_mutex_);
  reads_.erase(
      std::remove_if(reads_.begin(), reads_.end(), [&](const Read& read) { return read.owner == owner; }),
      reads_.end());
  pending_reads_.store(reads_.size(), std::memory_order_release);
}

Result<void> VulkanBuffer::complete_all_reads() {
  prefers_staging_.store(true, std::memory_order_relaxed);
  while (has_pending_reads()) {
    Read next;
    {
      const std::lock_guard lock(reads_mutex_);
      if (reads_.empty()) break;
      next = reads_.front();
    }
    // Only submitted work has pending reads, so this wait ends without another call.
    if (auto reached = next.timeline->wait(next.value, Instant::max()); !reached) return reached;
    if (auto completed = complete_reads(next.owner); !completed) return completed;
  }
  return {};
}

}  // namespace wye::vulkan
