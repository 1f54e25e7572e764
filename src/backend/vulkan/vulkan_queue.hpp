#pragma once
/// The one queue of a device.
#include <wye/base/result.hpp>
#include <wye/device/native.hpp>

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "backend/vulkan/vulkan_messages.hpp"
#include "backend/vulkan/vulkan_timeline.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Gives batches of all lanes to the driver's queue, which works in order. device::PendingSubmissions holds back a batch
/// until the batches that it waits for were given. So the barrier that each batch begins with (see Encoder) is all the
/// waiting there is, and the driver never waits for a semaphore of wye's. It does for a foreign one: wye does not know when
/// that is signaled.
/// Threads: thread-safe. The lock that the driver demands for its queue is taken with nothing else held.
class VulkanQueue {
 public:
  /// A host that uses the queue too holds `lock` meanwhile.
  VulkanQueue(VulkanDevice& device, VkQueue queue, Messages* messages, const NativeLock& lock)
      : device_(device), queue_(queue), messages_(messages), hosts_lock_(lock) {}
  VkQueue handle() const noexcept { return queue_; }
  /// Returns the lock that the host holds while it uses the queue: its own, or that of a queue of wye's.
  NativeLock lock_for_others(bool is_hosts) noexcept { return is_hosts ? hosts_lock_ : NativeLock(mutex_); }

  /// Gives the driver a batch. `commands` may be null. When it completes, `own` reaches `value`, and each of `signals` its
  /// value.
  /// Errors: those of the driver.
  Result<void> give(const VulkanTimeline& own, std::uint64_t value, VkCommandBuffer commands,
                    std::span<const device::TimelinePoint> waits,
                    std::span<const device::TimelinePoint> signals);

 private:
  VulkanDevice& device_;
  VkQueue queue_;
  Messages* messages_;
  NativeLock hosts_lock_;
  std::mutex mutex_;
  /// Semaphores of a submission; here so that they keep their memory.
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
  Semaphores waited_;
  Semaphores signaled_;
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
