#include "backend/vulkan/vulkan_queue.hpp"

#include <algorithm>
#include <utility>

#include "backend/vulkan/vulkan_device.hpp"
#include "backend/vulkan/vulkan_error.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {
namespace {

/// Lanes check that what they wait for is of their device.
VulkanTimeline& timeline_of(const device::TimelinePoint& point) {
  return static_cast<VulkanTimeline&>(*point.timeline);
}

std::string refused(const VulkanDevice& device) {
  return base::text("Device '{}' does not take the submission.", device.info().id);
}

}  // namespace

bool VulkanQueue::scheduled(std::span<const device::TimelinePoint> waits) {
  return std::all_of(waits.begin(), waits.end(), [](const device::TimelinePoint& point) {
    return timeline_of(point).scheduled() >= point.value;
  });
}

bool VulkanQueue::ready(const VulkanTimeline& own, std::uint64_t last,
                        std::span<const device::TimelinePoint> waits) const {
  // What only the driver waits for is not over yet when the batch is given.
  return own.scheduled() == last && scheduled(waits) &&
         std::all_of(waits.begin(), waits.end(), [](const device::TimelinePoint& point) {
           return !point.timeline->is_foreign() || point.timeline->reached() >= point.value;
         });
}

bool VulkanQueue::is_parked(const VulkanTimeline& own) const {
  return std::any_of(parked_.begin(), parked_.end(),
                     [&](const Batch& batch) { return batch.own.get() == &own; });
}

/// The failure because of which one of `waits` will never be reached, or null.
const Error* VulkanQueue::hopeless(std::span<const device::TimelinePoint> waits) {
  for (const device::TimelinePoint& point : waits)
    if (const VulkanTimeline& t = timeline_of(point); t.failure_ && t.scheduled() < point.value)
      return &*t.failure_;
  return nullptr;
}

VkResult VulkanQueue::give(VulkanTimeline& own, std::uint64_t value, VkCommandBuffer commands,
                           std::span<const device::TimelinePoint> waits,
                           std::span<const device::TimelinePoint> signals) {
  waited_.clear();
  for (const device::TimelinePoint& point : waits)
    if (point.timeline->is_foreign()) waited_.add(timeline_of(point).semaphore_, point.value);
  signaled_.clear();
  signaled_.add(own.semaphore_, value);
  for (const device::TimelinePoint& point : signals)
    signaled_.add(timeline_of(point).semaphore_, point.value);
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
  VkResult r = VK_SUCCESS;
  {
    const std::lock_guard lock(hosts_lock_);
    r = device_.vk.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
  }
  if (r == VK_SUCCESS) {
    own.scheduled_.store(value, std::memory_order_release);
    changed_.wake_all();
  }
  return r;
}

Result<void> VulkanQueue::submit(const std::shared_ptr<VulkanTimeline>& own, std::uint64_t value,
                                 VkCommandBuffer commands, std::span<const device::TimelinePoint> waits,
                                 std::span<const device::TimelinePoint> signals) {
  Batches gone;                       // these end after the lock: they may hold the last handle
  const MessageHold hold(messages_);  // and what the driver says is passed on after it
  VkResult given = VK_SUCCESS, others = VK_SUCCESS;
  {
    const base::Lock lock(mutex_);
    if (const Error* lost = device_.lost()) return *lost;
    if (own->failure_) return *own->failure_;
    if (const Error* why = hopeless(waits)) return why->with_context("while waiting for another lane");
    if (!scheduled(waits) || is_parked(*own)) {
      parked_.push_back(
          {own, value, commands, {waits.begin(), waits.end()}, {signals.begin(), signals.end()}});
      return {};
    }
    given = give(*own, value, commands, waits, signals);
    if (given == VK_SUCCESS && !parked_.empty()) others = advance(gone);
  }
  if (others == VK_ERROR_DEVICE_LOST) device_.lose("vkQueueSubmit");
  if (given != VK_SUCCESS) return device_.failed(given, "vkQueueSubmit", refused(device_));
  return {};
}

Result<void> VulkanQueue::signal(VulkanTimeline& timeline, std::uint64_t value) {
  Batches gone;
  const MessageHold hold(messages_);
  VkResult others = VK_SUCCESS;
  {
    const base::Lock lock(mutex_);
    if (const Error* lost = device_.lost()) return *lost;
    if (value <= timeline.scheduled()) return device::not_larger(value, timeline.scheduled());
    timeline.scheduled_.store(value, std::memory_order_release);
    timeline.raise(value);
    changed_.wake_all();
    others = advance(gone);
  }
  if (others == VK_ERROR_DEVICE_LOST) device_.lose("vkQueueSubmit");
  return {};
}

VkResult VulkanQueue::advance(Batches& gone) {
  for (std::size_t i = 0; i < parked_.size();) {
    const std::shared_ptr<VulkanTimeline> own = parked_[i].own;
    const bool first_of_lane = std::none_of(parked_.begin(), parked_.begin() + static_cast<std::ptrdiff_t>(i),
                                            [&](const Batch& batch) { return batch.own == own; });
    if (!first_of_lane) {
      ++i;
    } else if (const Error* why = hopeless(parked_[i].waits)) {
      fail(*own, why->with_context("while waiting for another lane"), gone);
      i = 0;
    } else if (scheduled(parked_[i].waits)) {
      const VkResult r =
          give(*own, parked_[i].value, parked_[i].commands, parked_[i].waits, parked_[i].signals);
      if (r == VK_ERROR_DEVICE_LOST) return r;
      if (r == VK_SUCCESS) {
        gone.push_back(std::move(parked_[i]));
        parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        fail(*own, failure(r, "vkQueueSubmit", refused(device_)), gone);
      }
      i = 0;  // another batch may have waited for this one
    } else {
      ++i;
    }
  }
  return VK_SUCCESS;
}

void VulkanQueue::fail(VulkanTimeline& own, Error error, Batches& gone) {
  own.failure_ = std::move(error);
  const auto rest = std::stable_partition(parked_.begin(), parked_.end(),
                                          [&](const Batch& batch) { return batch.own.get() != &own; });
  gone.insert(gone.end(), std::make_move_iterator(rest), std::make_move_iterator(parked_.end()));
  parked_.erase(rest, parked_.end());
  changed_.wake_all();
}

Result<void> VulkanQueue::wait_scheduled(VulkanTimeline& timeline, std::uint64_t value, Instant until) {
  base::Lock lock(mutex_);
  changed_.wait(lock, until,
                [&] { return timeline.scheduled() >= value || timeline.failure_ || device_.lost(); });
  if (const Error* lost = device_.lost()) return *lost;
  if (timeline.scheduled() >= value) return {};
  if (timeline.failure_) return *timeline.failure_;
  return Error(Errc::timed_out,
               base::text("Nothing that reaches the value waited for ({}) was given to device '{}' in time.",
                          value, device_.info().id));
}

void VulkanQueue::close(VulkanTimeline& timeline) noexcept {
  Batches gone;
  VkResult others = VK_SUCCESS;
  {
    const base::Lock lock(mutex_);
    if (!timeline.failure_)
      fail(timeline, Error(Errc::closed, base::text("A lane of device '{}' has ended.", device_.info().id)),
           gone);
    if (!device_.lost()) others = advance(gone);
  }
  if (others == VK_ERROR_DEVICE_LOST) device_.lose("vkQueueSubmit");
}

void VulkanQueue::give_up() noexcept {
  Batches gone;
  const base::Lock lock(mutex_);
  gone.swap(parked_);
  changed_.wake_all();
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
