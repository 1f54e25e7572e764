#pragma once
/// Vulkan's own objects: bring yours, take wye's. Needs the Vulkan headers of the program that includes it; nothing is
/// linked.
#include <vulkan/vulkan_core.h>
#include <wye/interop/detail/native.hpp>

#include <string>
#include <utility>

namespace wye {
inline namespace v0 {
namespace interop {

/// A VkDevice with the one queue that is used of it.
struct VulkanDevice {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  VkQueue queue = VK_NULL_HANDLE;  ///< null: the first of the family
  /// Held by whoever gives the queue something, wye and the host alike: any std::mutex, or what has its lock and unlock. Not
  /// to be held during a call of wye.
  NativeLock lock = {};
  /// What `device` was made with: it says which features and extensions are enabled, the driver does not. Read while the
  /// device is brought, not later.
  const VkDeviceCreateInfo* created = nullptr;
  /// Where the host's functions of Vulkan come from; null: from the system's loader.
  PFN_vkGetInstanceProcAddr entry_points = nullptr;
};

/// The host's own device, for `RuntimeOptions::adopt` and `PoolOptions::adopt`. It must outlive all that wye has on it.
/// Of what was enabled wye needs timelineSemaphore and bufferDeviceAddress; the instance was made for Vulkan 1.2 or newer.
inline NativeDevice vulkan_device(const VulkanDevice& host) {
  NativeDevice native{.backend = "vulkan"};
  native.instance = detail::number_of(host.instance);
  native.physical = detail::number_of(host.physical);
  native.device = detail::number_of(host.device);
  native.queue = detail::number_of(host.queue);
  native.queue_family = host.queue_family;
  native.lock = host.lock;
  native.created = host.created;
  native.entry_points = reinterpret_cast<void (*)()>(host.entry_points);
  return native;
}

/// What stands behind a device of the backend "vulkan". Whoever uses its queue holds `lock`.
/// Errors: invalid_argument (another backend's), device_lost.
inline Result<VulkanDevice> vulkan_device(const Device& device) {
  auto native = detail::native_device("vulkan", device);
  if (!native) return std::move(native).error();
  VulkanDevice out;
  out.instance = detail::handle_of<VkInstance>(native->instance);
  out.physical = detail::handle_of<VkPhysicalDevice>(native->physical);
  out.device = detail::handle_of<VkDevice>(native->device);
  out.queue_family = native->queue_family;
  out.queue = detail::handle_of<VkQueue>(native->queue);
  out.lock = native->lock;
  out.entry_points = reinterpret_cast<PFN_vkGetInstanceProcAddr>(native->entry_points);
  return out;
}

/// Memory of one VkDevice.
struct VulkanBuffer {
  /// Made for storage, transfer in both directions and device addresses, exclusive to the device's queue family. Null, of
  /// what is brought: wye makes one over `memory`.
  VkBuffer buffer = VK_NULL_HANDLE;
  /// Allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, for device memory.
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;  ///< of the first byte, in `memory`
  VkDeviceSize bytes = 0;
  VkDeviceAddress address = 0;  ///< of what is taken
};

/// What stands behind a buffer: of several, `memory` is the same, each at its `offset`.
/// Errors: invalid_argument (another backend's), device_lost.
inline Result<VulkanBuffer> vulkan_buffer(const Buffer& buffer) {
  auto native = detail::native_memory("vulkan", buffer);
  if (!native) return std::move(native).error();
  return VulkanBuffer{detail::handle_of<VkBuffer>(native->buffer),
                      detail::handle_of<VkDeviceMemory>(native->memory), native->offset, native->bytes.count,
                      native->address};
}

/// The host's memory as a buffer of T on `device`, without a copy. `release` is called once when wye has done with it, and
/// not where this fails.
/// Errors: invalid_argument (neither a buffer nor memory, no whole number of T, more than the driver says it holds),
///         out_of_memory, device_lost.
template <class T>
Result<Buffer> vulkan_buffer(const Device& device, const VulkanBuffer& host, Release release = {}) {
  detail::NativeMemory native{.backend = "vulkan"};
  native.buffer = detail::number_of(host.buffer);
  native.memory = detail::number_of(host.memory);
  native.offset = host.offset;
  native.bytes = Bytes{host.bytes};
  return detail::adopt(device, native, element_type<T>(), sizeof(T), std::move(release));
}

/// A value of a timeline semaphore.
struct VulkanSemaphore {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  std::uint64_t value = 0;
};

/// The semaphore that reaches `point`, a lane's: the host's own submissions to any queue of the device may wait for it. It
/// lives as long as `point`; only wye signals it.
/// Errors: invalid_argument (another backend's, or empty), device_lost.
inline Result<VulkanSemaphore> vulkan_semaphore(const SyncPoint& point) {
  auto native = detail::native_point("vulkan", point);
  if (!native) return std::move(native).error();
  return VulkanSemaphore{detail::handle_of<VkSemaphore>(native->object), native->value};
}

/// A value of the host's own timeline semaphore, for `Lease::wait_for` and `Lease::signal`. The semaphore must outlive it
/// and the work that uses it.
/// Errors: invalid_argument (no semaphore, another backend's device), device_lost.
inline Result<SyncPoint> sync_point(const Device& device, const VulkanSemaphore& host) {
  detail::NativePoint native{.backend = "vulkan"};
  native.object = detail::number_of(host.semaphore);
  native.value = host.value;
  return detail::adopt(device, native);
}

}  // namespace interop
}  // namespace v0
}  // namespace wye
