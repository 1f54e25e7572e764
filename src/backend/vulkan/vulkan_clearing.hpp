#pragma once
/// Clears buffers in memory that the host does not share.
#include <wye/base/result.hpp>

#include <cstdint>
#include <list>
#include <mutex>

#include "backend/vulkan/vulkan_dispatch.hpp"

namespace wye::inline v0::vulkan {

class VulkanDevice;

/// Fills new buffers with zeros on the device's queue. The queue runs in order, and each batch of a
/// lane begins with a barrier after all earlier batches: every later use of a buffer finds the zeros.
/// Threads: thread-safe. The driver is called without a lock held.
class VulkanClearing {
 public:
  /// The end of a fill: `done` has `value`.
  struct Fill {
    VkSemaphore done = VK_NULL_HANDLE;  ///< null: nothing was filled
    std::uint64_t value = 0;
  };

  explicit VulkanClearing(VulkanDevice& device) : device_(device) {}
  /// The device has completed all fills, or is lost.
  ~VulkanClearing();
  VulkanClearing(const VulkanClearing&) = delete;
  VulkanClearing& operator=(const VulkanClearing&) = delete;

  /// Submits a fill of all of `buffer`. The buffer must exist until `wait` has returned true.
  /// Errors: out_of_memory, device_lost.
  Result<Fill> clear(VkBuffer buffer);
  /// Waits until a fill has completed or the device is lost. Returns false if the driver does not
  /// tell.
  bool wait(const Fill& fill) noexcept;

 private:
  struct Commands {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkSemaphore done = VK_NULL_HANDLE;
    std::uint64_t value = 0;  ///< of the last fill
  };
  using One = std::list<Commands>;
  Result<One> take();
  Result<void> create(Commands& commands);
  Result<void> record(const Commands& commands, VkBuffer buffer);
  void destroy(One& list) noexcept;

  VulkanDevice& device_;
  std::mutex mutex_;
  One all_;  // those whose fill ended first are in front
};

}  // namespace wye::vulkan
