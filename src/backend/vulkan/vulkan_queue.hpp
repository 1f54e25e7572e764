#pragma once
/// The one queue of a device, and what waits to be given to it.
#include <wye/base/clock.hpp>
#include <wye/device/native.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "backend/vulkan/vulkan_messages.hpp"
#include "backend/vulkan/vulkan_timeline.hpp"
#include "base/gate.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Gives batches of all lanes to the driver's queue. A queue works in order: a batch that waited in it for
/// something not given to it yet would stop every other lane, for ever if it waits for a batch behind it. So
/// such a batch is parked here until what it waits for has been given to the queue, or signaled by the host;
/// then the barrier that each batch begins with (see Encoder) is all the waiting there is, and the driver
/// never waits for a semaphore of wye's. It does for one that the host brought: when that is signaled is not known here.
/// Threads: thread-safe. The lock that the driver demands for its queue guards the state of the timelines
///          too; it is
///          taken with nothing else held.
class VulkanQueue {
 public:
  /// `lock` is what a host that uses the queue too holds meanwhile.
  VulkanQueue(VulkanDevice& device, VkQueue queue, Messages* messages, const NativeLock& lock)
      : device_(device), queue_(queue), messages_(messages), hosts_lock_(lock) {}
  VkQueue handle() const noexcept { return queue_; }
  /// What somebody else holds who gives the queue something: the lock that the host brought, or, of our own, ours.
  NativeLock lock_for_others(bool is_hosts) noexcept { return is_hosts ? hosts_lock_ : NativeLock(mutex_); }

  /// Whether a batch of `own` with these waits would go to the driver at once.
  bool ready(const VulkanTimeline& own, std::uint64_t last,
             std::span<const device::TimelinePoint> waits) const;
  /// Gives a batch to the driver, or parks it. `commands` may be null. When done, `own` reaches `value`, and each of
  /// `signals` its own.
  /// Errors: those of the driver; the failure of `own`, or of what is waited for.
  Result<void> submit(const std::shared_ptr<VulkanTimeline>& own, std::uint64_t value,
                      VkCommandBuffer commands, std::span<const device::TimelinePoint> waits,
                      std::span<const device::TimelinePoint> signals);
  /// Moves a timeline of the host, and gives to the driver what waited for it.
  Result<void> signal(VulkanTimeline& timeline, std::uint64_t value);
  /// Waits until `value` has been given to the driver, or reached where the host moves the timeline.
  Result<void> wait_scheduled(VulkanTimeline& timeline, std::uint64_t value, Instant until);
  /// Says that a lane has ended: no more values will come.
  void close(VulkanTimeline& timeline) noexcept;
  /// Drops what is parked and wakes who waits: the device is lost.
  void give_up() noexcept;

 private:
  struct Batch {
    std::shared_ptr<VulkanTimeline> own;
    std::uint64_t value = 0;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::vector<device::TimelinePoint> waits;
    std::vector<device::TimelinePoint> signals;
  };
  using Batches = std::vector<Batch>;
  VkResult give(VulkanTimeline& own, std::uint64_t value, VkCommandBuffer commands,
                std::span<const device::TimelinePoint> waits, std::span<const device::TimelinePoint> signals);
  bool is_parked(const VulkanTimeline& own) const;
  static bool scheduled(std::span<const device::TimelinePoint> waits);
  static const Error* hopeless(std::span<const device::TimelinePoint> waits);
  /// Gives to the driver whatever has become ready; what has left the list is moved to `gone`.
  VkResult advance(Batches& gone);
  void fail(VulkanTimeline& own, Error error, Batches& gone);

  VulkanDevice& device_;
  VkQueue queue_;
  Messages* messages_;
  NativeLock hosts_lock_;
  std::mutex mutex_;
  base::Gate changed_;
  Batches parked_;
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
