#include "backend/vulkan/vulkan_timeline.hpp"

#include <limits>
#include <utility>

#include "backend/vulkan/vulkan_device.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {
namespace {

/// What is left until `until`, as the driver wants it. Zero where it has passed, for ever where it never
/// comes.
std::uint64_t nanoseconds_until(Instant until) {
  if (until == Instant::max()) return std::numeric_limits<std::uint64_t>::max();
  const Instant now = Clock::steady().now();
  return until > now ? static_cast<std::uint64_t>((until - now).count()) : 0;
}

}  // namespace

Result<std::shared_ptr<VulkanTimeline>> VulkanTimeline::create(std::shared_ptr<VulkanDevice> device,
                                                               MovedBy by) {
  if (const Error* lost = device->lost()) return *lost;
  auto timeline = base::own(new VulkanTimeline(std::move(device), by));
  if (by == MovedBy::host) return timeline;
  if (auto made = timeline->create_semaphore(nullptr); !made) return std::move(made).error();
  return timeline;
}

Result<void> VulkanTimeline::create_semaphore(const void* next) {
  VulkanDevice& owner = *device_;
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
                        base::text("Device '{}' gives no semaphore.", owner.info().id));
  semaphore_ = semaphore;
  return {};
}

std::shared_ptr<VulkanTimeline> VulkanTimeline::adopt(std::shared_ptr<VulkanDevice> device,
                                                      VkSemaphore semaphore) {
  auto timeline = base::own(new VulkanTimeline(std::move(device), MovedBy::others));
  timeline->semaphore_ = semaphore;
  timeline->is_hosts_ = true;
  timeline->scheduled_ = std::numeric_limits<std::uint64_t>::max();
  return timeline;
}

VulkanTimeline::~VulkanTimeline() {
  if (is_hosts_) return;
  if (semaphore_ != VK_NULL_HANDLE) device_->vk.DestroySemaphore(device_->handle(), semaphore_, nullptr);
}

const device::DeviceBase* VulkanTimeline::owner() const noexcept { return device_.get(); }

void VulkanTimeline::raise(std::uint64_t value) noexcept {
  std::uint64_t seen = reached_.load(std::memory_order_relaxed);
  while (seen < value && !reached_.compare_exchange_weak(seen, value, std::memory_order_acq_rel)) {
  }
}

std::uint64_t VulkanTimeline::reached() noexcept {
  if (by_ != MovedBy::host && !device_->lost() && reached_.load(std::memory_order_acquire) < scheduled()) {
    std::uint64_t value = 0;
    const VkResult r = device_->vk.GetSemaphoreCounterValue(device_->handle(), semaphore_, &value);
    if (r == VK_SUCCESS)
      raise(value);
    else if (r == VK_ERROR_DEVICE_LOST)
      device_->lose("vkGetSemaphoreCounterValue");
  }
  return reached_.load(std::memory_order_acquire);
}

Result<void> VulkanTimeline::wait(std::uint64_t value, Instant until) {
  if (const Error* lost = device_->lost()) return *lost;
  if (reached_.load(std::memory_order_acquire) >= value) return {};
  if (scheduled() < value)
    if (auto scheduled = device_->queue().wait_scheduled(*this, value, until); !scheduled) return scheduled;
  if (by_ == MovedBy::host) return {};
  const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .pNext = nullptr,
                                 .flags = 0,
                                 .semaphoreCount = 1,
                                 .pSemaphores = &semaphore_,
                                 .pValues = &value};
  VkResult r = VK_TIMEOUT;
  do {
    const Instant rest = device_->sleep_until(until);
    r = device_->vk.WaitSemaphores(device_->handle(), &info, nanoseconds_until(rest));
  } while (r == VK_TIMEOUT && !device_->lost() && nanoseconds_until(until) != 0);  // a driver may wake early
  // Somebody may have seen the device lost meanwhile: then nothing that was computed is to be trusted.
  if (const Error* lost = device_->lost()) return *lost;
  if (r == VK_SUCCESS) {
    raise(value);
    if (turns_)
      if (auto why = turns_->broken(value)) return *std::move(why);
    return {};
  }
  if (r == VK_TIMEOUT)
    return Error(Errc::timed_out, base::text("Device '{}' has not reached the value waited for ({}) in time.",
                                             device_->info().id, value));
  return device_->failed(r, "vkWaitSemaphores",
                         base::text("Waiting for device '{}' failed.", device_->info().id));
}

Result<void> VulkanTimeline::signal(std::uint64_t value) {
  if (turns_) {
    const VkSemaphoreSignalInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                     .pNext = nullptr,
                                     .semaphore = semaphore_,
                                     .value = value};
    // Also of a device that is lost: who waits on the other one is to be released.
    if (const VkResult r = device_->vk.SignalSemaphore(device_->handle(), &info); r != VK_SUCCESS)
      return device_->failed(r, "vkSignalSemaphore",
                             base::text("Device '{}' does not raise a semaphore.", device_->info().id));
    return {};
  }
  if (by_ != MovedBy::host)
    return Error(
        Errc::invalid_argument,
        base::text("A timeline that device '{}' moves cannot be moved by the host.", device_->info().id));
  return device_->queue().signal(*this, value);
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
