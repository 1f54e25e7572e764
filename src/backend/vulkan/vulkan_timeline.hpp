#pragma once
/// Timelines of one device: those that lanes move and those that the host moves.
#include <cstdint>
#include <memory>
#include <optional>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "base/descriptor.hpp"
#include "device/pending_signals.hpp"
#include "device/scheduled_timeline.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

class VulkanDevice;

/// A lane's timeline is a semaphore of the driver. The host's is a number: a submission that waits for it is not given to
/// the driver before it is reached (see device::PendingSubmissions).
/// Threads: thread-safe.
class VulkanTimeline final : public device::ScheduledTimeline {
 public:
  static Result<std::shared_ptr<VulkanTimeline>> create(std::shared_ptr<VulkanDevice> device, SignaledBy by);
  /// Wraps the host's own semaphore, which outlives the timeline.
  static std::shared_ptr<VulkanTimeline> adopt(std::shared_ptr<VulkanDevice> device, VkSemaphore semaphore);
  /// Creates a timeline that lanes of another driver move too. That driver opens its semaphore from `file`.
  static Result<std::shared_ptr<VulkanTimeline>> share(std::shared_ptr<VulkanDevice> device);
  /// Errors: out_of_memory, device_lost.
  Result<base::Descriptor> file();
  ~VulkanTimeline() override;

  std::uint64_t reached() noexcept override;
  /// Repeats a vkWaitSemaphores that fails without the device being lost, and asks for the counter meanwhile.
  /// Errors: as the contract says; that of the driver, after `base::Backoff::limit` without an answer to either.
  Result<void> wait(std::uint64_t value, Instant until) override;
  Result<void> signal(std::uint64_t value) override;
  VulkanDevice& device() const noexcept;
  device::PendingSignals* pending_signals() noexcept override {
    return pending_signals_ ? &*pending_signals_ : nullptr;
  }
  /// Returns null if the host moves the timeline.
  VkSemaphore semaphore() const noexcept { return semaphore_; }

 private:
  VulkanTimeline(std::shared_ptr<VulkanDevice> device, SignaledBy by);
  Result<void> create_semaphore(const void* next);
  VkResult ask() noexcept;

  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  bool is_hosts_ = false;                                  // the host destroys it
  std::optional<device::PendingSignals> pending_signals_;  // of a shared one
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
