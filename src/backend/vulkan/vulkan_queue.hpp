#pragma once
/// The one queue of a device.
#include <wye/base/result.hpp>
#include <wye/device/native.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "backend/vulkan/vulkan_messages.hpp"
#include "backend/vulkan/vulkan_stamps.hpp"
#include "backend/vulkan/vulkan_timeline.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::vulkan {

/// Submits batches of all lanes to the driver's queue, which executes in order.
/// `device::PendingSubmissions` delays a batch until the batches that it waits for are submitted.
/// The barrier at the beginning of each batch (see Encoder) is therefore the only wait, and the
/// driver never waits for a semaphore of wye. It does wait for foreign semaphores, because wye does
/// not know when they are signaled.
/// Threads: thread-safe. The lock that the driver demands for its queue is taken with nothing else
///          held.
class VulkanQueue {
 public:
  /// An application that also uses the queue provides `lock`, and holds it during its own calls.
  VulkanQueue(VulkanDevice& device, VkQueue queue, Messages* messages, const NativeLock& lock)
      : device_(device), queue_(queue), messages_(messages), adopted_lock_(lock), queries_(device) {}
  VkQueue handle() const noexcept { return queue_; }
  /// Returns the queries of its clock.
  VulkanQueries& queries() noexcept { return queries_; }
  /// Returns a number, at least 1, that no other submission of the device has.
  std::uint64_t next_serial() noexcept { return serial_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Returns the lock that the application holds while it uses the queue: its own for an adopted
  /// queue, otherwise wye's.
  NativeLock lock_for_others(bool is_adopted) noexcept {
    return is_adopted ? adopted_lock_ : NativeLock(mutex_);
  }

  /// Submits a batch to the driver. `commands` may be null. On completion, semaphore `own` has
  /// `value`, and each of `signals` its value.
  /// Errors: those of the driver.
  Result<void> submit(VkSemaphore own, std::uint64_t value, VkCommandBuffer commands,
                      std::span<const device::TimelinePoint> waits,
                      std::span<const device::TimelinePoint> signals);

 private:
  VulkanDevice& device_;
  VkQueue queue_;
  Messages* messages_;
  NativeLock adopted_lock_;
  std::mutex mutex_;
  /// The semaphores of a submission. Members of the queue keep their memory between submissions.
  struct Semaphores {
    std::vector<VkSemaphore> semaphores;
    std::vector<std::uint64_t> values;
    std::vector<VkPipelineStageFlags> stages;
    void clear() noexcept { semaphores.clear(), values.clear(), stages.clear(); }
    void add(VkSemaphore semaphore, std::uint64_t value) {
      semaphores.push_back(semaphore);
      values.push_back(value);
      stages.push_back(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    }
    std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(semaphores.size()); }
  };
  std::atomic<std::uint64_t> serial_{0};
  VulkanQueries queries_;
  Semaphores waited_;
  Semaphores signaled_;
};

}  // namespace wye::vulkan
