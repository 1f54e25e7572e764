#include "backend/vulkan/vulkan_queue.hpp"

#include "backend/vulkan/vulkan_device.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

VkSemaphore semaphore_of(const device::TimelinePoint& point) {
  return static_cast<const VulkanTimeline&>(*point.timeline).semaphore();
}

}  // namespace

Result<void> VulkanQueue::submit(VkSemaphore own, std::uint64_t value, VkCommandBuffer commands,
                                 std::span<const device::TimelinePoint> waits,
                                 std::span<const device::TimelinePoint> signals) {
  VkResult r = VK_SUCCESS;
  {
    const MessageHold hold(messages_);  // the sink gets the driver's messages after the unlock
    const std::lock_guard lock(mutex_);
    if (const Error* lost = device_.lost()) return *lost;
    waited_.clear();
    for (const device::TimelinePoint& point : waits)
      if (point.timeline->is_foreign()) waited_.add(semaphore_of(point), point.value);
    signaled_.clear();
    signaled_.add(own, value);
    for (const device::TimelinePoint& point : signals) signaled_.add(semaphore_of(point), point.value);
    const VkTimelineSemaphoreSubmitInfo values{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                               .pNext = nullptr,
                                               .waitSemaphoreValueCount = waited_.count(),
                                               .pWaitSemaphoreValues = waited_.values.data(),
                                               .signalSemaphoreValueCount = signaled_.count(),
                                               .pSignalSemaphoreValues = signaled_.values.data()};
    const VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &values,
                            .waitSemaphoreCount = waited_.count(),
                            .pWaitSemaphores = waited_.semaphores.data(),
                            .pWaitDstStageMask = waited_.stages.data(),
                            .commandBufferCount = commands == VK_NULL_HANDLE ? 0u : 1u,
                            .pCommandBuffers = &commands,
                            .signalSemaphoreCount = signaled_.count(),
                            .pSignalSemaphores = signaled_.semaphores.data()};
    const std::lock_guard adopted_lock(adopted_lock_);
    r = device_.vk.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
  }
  if (r == VK_SUCCESS) return {};
  return device_.failed(r, "vkQueueSubmit",
                        base::text("Device '{}' rejects the submission.", device_.info().id));
}

}  // namespace wye::vulkan
