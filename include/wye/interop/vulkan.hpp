#pragma once
/// Vulkan: lets wye use devices, memory and semaphores of the application, and the application use
/// those of wye. Needs Vulkan headers in the program that includes it; links nothing.
#include <vulkan/vulkan_core.h>
#include <wye/interop/detail/native.hpp>

#include <string>
#include <utility>

namespace wye::inline v0::interop {

/// A VkDevice and its queue that wye uses.
struct VulkanDevice {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  VkQueue queue = VK_NULL_HANDLE;  ///< null: the first queue of the family
  /// Held by wye and by the application during each submission to the queue: a std::mutex, or a
  /// type with its lock and unlock. The application must not hold it during a call of wye.
  NativeLock lock = {};
  /// The creation parameters of `device`, which name the enabled features and extensions. Read when
  /// the device is adopted, not later.
  const VkDeviceCreateInfo* created = nullptr;
  /// Resolves the Vulkan functions of the application; null: the system's loader.
  PFN_vkGetInstanceProcAddr entry_points = nullptr;
};

/// Describes a device of the application for `PoolOptions::adopt`. It must outlive all objects that
/// wye creates on it. It must have the features timelineSemaphore and bufferDeviceAddress enabled,
/// and an instance of Vulkan 1.2 or newer.
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

/// Returns the Vulkan objects of a device of wye. Callers hold `lock` while they use the queue.
/// Errors: invalid_argument (another backend), device_lost.
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
  /// Has usage for storage, transfer in both directions and device addresses, exclusive to the
  /// device's queue family. If it is null in memory of the application, wye creates a VkBuffer over
  /// `memory`.
  VkBuffer buffer = VK_NULL_HANDLE;
  /// Allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, for device memory.
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;  ///< of the first byte, in `memory`
  VkDeviceSize bytes = 0;
  VkDeviceAddress address = 0;  ///< set by wye; not read
};

/// Returns the Vulkan memory of a buffer. Several buffers may share `memory`, each at its `offset`.
/// Errors: invalid_argument (another backend), device_lost.
inline Result<VulkanBuffer> vulkan_buffer(const Buffer& buffer) {
  auto native = detail::native_memory("vulkan", buffer);
  if (!native) return std::move(native).error();
  return VulkanBuffer{detail::handle_of<VkBuffer>(native->buffer),
                      detail::handle_of<VkDeviceMemory>(native->memory), native->offset, native->bytes.count,
                      native->address};
}

/// Returns a buffer of T over memory of the application, without a copy. Calls `release` once after
/// the last use; not if it fails.
/// Errors:  invalid_argument (neither a buffer nor memory, a size that is not a multiple of T, or
///          more than the driver reports), out_of_memory, device_lost.
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

/// Returns the semaphore of `point`, a point of a lane. Submissions of the application to any queue
/// of the device may wait for it. It is valid as long as `point`. Only wye signals it.
/// Errors: invalid_argument (another backend, or empty), device_lost.
inline Result<VulkanSemaphore> vulkan_semaphore(const SyncPoint& point) {
  auto native = detail::native_point("vulkan", point);
  if (!native) return std::move(native).error();
  return VulkanSemaphore{detail::handle_of<VkSemaphore>(native->object), native->value};
}

/// Returns a point for a timeline semaphore of the application, for `Lease::wait_for` and
/// `Lease::signal`. The semaphore must outlive the point and the work that uses it.
/// Errors: invalid_argument (no semaphore, a device of another backend), device_lost.
inline Result<SyncPoint> sync_point(const Device& device, const VulkanSemaphore& host) {
  detail::NativePoint native{.backend = "vulkan"};
  native.object = detail::number_of(host.semaphore);
  native.value = host.value;
  return detail::adopt(device, native);
}

}  // namespace wye::interop
