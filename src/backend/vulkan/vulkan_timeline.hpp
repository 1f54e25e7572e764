#pragma once
/// Timelines of one device: those that lanes signal and those that the host signals.
#include <cstdint>
#include <memory>
#include <optional>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "base/descriptor.hpp"
#include "device/pending_signals.hpp"
#include "device/scheduled_timeline.hpp"

namespace wye::inline v0::vulkan {

class VulkanDevice;

/// A lane's timeline is a semaphore of the driver. The host's is a number: a submission that waits
/// for it is submitted only after it is reached (see `device::PendingSubmissions`).
/// Threads: thread-safe.
class VulkanTimeline final : public device::ScheduledTimeline {
 public:
  static Result<std::shared_ptr<VulkanTimeline>> create(std::shared_ptr<VulkanDevice> device, SignaledBy by);
  /// Adopts a semaphore of the application, which outlives the timeline.
  static std::shared_ptr<VulkanTimeline> adopt(std::shared_ptr<VulkanDevice> device, VkSemaphore semaphore);
  /// Creates a timeline that lanes of another driver signal, too. That driver opens its semaphore
  /// from `file`.
  static Result<std::shared_ptr<VulkanTimeline>> share(std::shared_ptr<VulkanDevice> device);
  /// Errors: out_of_memory, device_lost.
  Result<base::Descriptor> file();
  ~VulkanTimeline() override;

  std::uint64_t reached() noexcept override;
  /// Repeats a vkWaitSemaphores that fails while the device is not lost, and polls the counter in
  /// between.
  /// Errors: those of the contract; the driver's error if both calls fail for
  ///         `base::Backoff::limit`.
  Result<void> wait(std::uint64_t value, Instant until) override;
  Result<void> signal(std::uint64_t value) override;
  VulkanDevice& device() const noexcept;
  device::PendingSignals* pending_signals() noexcept override {
    return pending_signals_ ? &*pending_signals_ : nullptr;
  }
  /// Returns null if the host signals the timeline.
  VkSemaphore semaphore() const noexcept { return semaphore_; }

 private:
  VulkanTimeline(std::shared_ptr<VulkanDevice> device, SignaledBy by);
  Result<void> create_semaphore(const void* next);
  VkResult poll() noexcept;

  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  bool is_adopted_ = false;                                // the application destroys it
  std::optional<device::PendingSignals> pending_signals_;  // of a shared timeline
};

}  // namespace wye::vulkan
