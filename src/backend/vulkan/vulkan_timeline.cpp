#include "backend/vulkan/vulkan_timeline.hpp"

#include <limits>
#include <utility>

#include "backend/vulkan/vulkan_device.hpp"
#include "backend/vulkan/vulkan_error.hpp"
#include "base/backoff.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

/// Returns the time until `until` in the driver's unit: 0 if it has passed, the maximum if there is
/// no deadline.
std::uint64_t nanoseconds_until(Instant until) {
  if (until == Instant::max()) return std::numeric_limits<std::uint64_t>::max();
  const Instant now = Clock::steady().now();
  return until > now ? static_cast<std::uint64_t>((until - now).count()) : 0;
}

}  // namespace

VulkanTimeline::VulkanTimeline(std::shared_ptr<VulkanDevice> device, SignaledBy by)
    : ScheduledTimeline(device, device->pending(), by) {}

VulkanDevice& VulkanTimeline::device() const noexcept { return static_cast<VulkanDevice&>(*device_); }

Result<std::shared_ptr<VulkanTimeline>> VulkanTimeline::create(std::shared_ptr<VulkanDevice> device,
                                                               SignaledBy by) {
  if (const Error* lost = device->lost()) return *lost;
  auto timeline = base::own(new VulkanTimeline(std::move(device), by));
  if (by == SignaledBy::host) return timeline;
  if (auto made = timeline->create_semaphore(nullptr); !made) return std::move(made).error();
  return timeline;
}

Result<void> VulkanTimeline::create_semaphore(const void* next) {
  VulkanDevice& owner = device();
  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .pNext = next,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                       .initialValue = 0};
  const VkSemaphoreCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type, .flags = 0};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  if (const VkResult r = owner.vk.CreateSemaphore(owner.handle(), &info, nullptr, &semaphore);
      r != VK_SUCCESS)
    return owner.failed(r, "vkCreateSemaphore",
                        base::text("Device '{}' cannot create a semaphore.", owner.info().id));
  semaphore_ = semaphore;
  return {};
}

std::shared_ptr<VulkanTimeline> VulkanTimeline::adopt(std::shared_ptr<VulkanDevice> device,
                                                      VkSemaphore semaphore) {
  auto timeline = base::own(new VulkanTimeline(std::move(device), SignaledBy::others));
  timeline->semaphore_ = semaphore;
  timeline->is_adopted_ = true;
  return timeline;
}

VulkanTimeline::~VulkanTimeline() {
  call_seen();
  if (is_adopted_ || semaphore_ == VK_NULL_HANDLE) return;
  device().vk.DestroySemaphore(device().handle(), semaphore_, nullptr);
}

/// Reads the counter from the driver.
VkResult VulkanTimeline::poll() noexcept {
  VulkanDevice& owner = device();
  std::uint64_t value = 0;
  const VkResult r = owner.vk.GetSemaphoreCounterValue(owner.handle(), semaphore_, &value);
  if (r == VK_SUCCESS)
    raise(value);
  else if (r == VK_ERROR_DEVICE_LOST)
    owner.lose("vkGetSemaphoreCounterValue");
  return r;
}

std::uint64_t VulkanTimeline::reached() noexcept {
  if (signaled_by() != SignaledBy::host && !device_->lost() && seen() < scheduled()) (void)poll();
  return seen();
}

Result<void> VulkanTimeline::wait(std::uint64_t value, Instant until) {
  VulkanDevice& owner = device();
  if (const Error* lost = owner.lost()) return *lost;
  if (seen() >= value) return {};
  if (scheduled() < value)
    if (auto scheduled = pending_.wait_scheduled(*this, value, until); !scheduled) return scheduled;
  if (signaled_by() == SignaledBy::host) return {};
  const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .pNext = nullptr,
                                 .flags = 0,
                                 .semaphoreCount = 1,
                                 .pSemaphores = &semaphore_,
                                 .pValues = &value};
  base::Backoff backoff;
  VkResult r = VK_TIMEOUT;
  bool reached = false, answers = true;
  while (!reached && answers && !owner.lost()) {
    const Instant rest = owner.next_check(until);
    r = owner.vk.WaitSemaphores(owner.handle(), &info, nanoseconds_until(rest));
    reached = r == VK_SUCCESS;
    if (r == VK_ERROR_DEVICE_LOST) owner.lose("vkWaitSemaphores");
    if (reached || owner.lost()) break;
    // A failed wait tells nothing about the device; its counter does.
    if (r != VK_TIMEOUT && poll() == VK_SUCCESS) {
      backoff.answered();
      reached = seen() >= value;
    }
    if (nanoseconds_until(until) == 0) break;  // a driver may return early
    if (!reached && r != VK_TIMEOUT) answers = backoff.sleep(until);
  }
  // Another thread may have found the device lost. No result is then reliable.
  if (const Error* lost = owner.lost()) return *lost;
  if (reached) {
    raise(value);
    if (pending_signals_)
      if (auto why = pending_signals_->failure_of(value)) return *std::move(why);
    return {};
  }
  if (answers)
    return Error(Errc::timed_out, base::text("Device '{}' has not reached the value waited for ({}) in time.",
                                             owner.info().id, value));
  return failure(
      r, "vkWaitSemaphores",
      base::text("The driver of device '{}' has not reported for {} s whether the value waited for ({}) is "
                 "reached; the device may still be working.",
                 owner.info().id, base::Backoff::limit / std::chrono::seconds(1), value));
}

Result<void> VulkanTimeline::signal(std::uint64_t value) {
  if (!pending_signals_) return ScheduledTimeline::signal(value);
  VulkanDevice& owner = device();
  const VkSemaphoreSignalInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                   .pNext = nullptr,
                                   .semaphore = semaphore_,
                                   .value = value};
  // Signals on a lost device, too: lanes of the other device must not wait for ever.
  if (const VkResult r = owner.vk.SignalSemaphore(owner.handle(), &info); r != VK_SUCCESS)
    return owner.failed(r, "vkSignalSemaphore",
                        base::text("Device '{}' cannot signal a semaphore.", owner.info().id));
  return {};
}

}  // namespace wye::vulkan
