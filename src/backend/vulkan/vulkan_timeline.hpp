#pragma once
/// Timelines of one device: those that lanes move and those that the host moves.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "base/descriptor.hpp"
#include "device/device.hpp"
#include "device/timeline.hpp"
#include "device/turns.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

class VulkanDevice;

/// A lane's timeline is a semaphore of the driver. The host's is a number: what waits for it is not given to
/// the driver before it is reached (see VulkanQueue).
/// Threads: thread-safe.
class VulkanTimeline final : public device::Timeline {
 public:
  enum class MovedBy : std::uint8_t { lane, host, others };
  static Result<std::shared_ptr<VulkanTimeline>> create(std::shared_ptr<VulkanDevice> device, MovedBy by);
  /// A timeline over the host's own semaphore, which is not ended with it.
  static std::shared_ptr<VulkanTimeline> adopt(std::shared_ptr<VulkanDevice> device, VkSemaphore semaphore);
  /// A timeline that lanes of another driver move too, which opens its semaphore by what `file` gives.
  static Result<std::shared_ptr<VulkanTimeline>> share(std::shared_ptr<VulkanDevice> device);
  /// Errors: out_of_memory, device_lost.
  Result<base::Descriptor> file();
  ~VulkanTimeline() override;

  std::uint64_t reached() noexcept override;
  /// A vkWaitSemaphores that fails without the device being lost is repeated, and the counter is asked meanwhile.
  /// Errors: as the contract says; that of the driver, after `base::Backoff::limit` in which it answered neither.
  Result<void> wait(std::uint64_t value, Instant until) override;
  Result<void> signal(std::uint64_t value) override;
  const device::DeviceBase* owner() const noexcept override;
  VulkanDevice& device() const noexcept { return *device_; }
  bool is_foreign() const noexcept override { return by_ == MovedBy::others; }
  device::Turns* turns() noexcept override { return turns_ ? &*turns_ : nullptr; }
  /// Null where the host moves it.
  VkSemaphore semaphore() const noexcept { return semaphore_; }

  /// The largest value that the driver was told of, or the host has set: it will be reached unless the device
  /// is lost. Of one that others move every value counts as told: only the driver knows.
  std::uint64_t scheduled() const noexcept { return scheduled_.load(std::memory_order_acquire); }

 private:
  friend class VulkanQueue;
  VulkanTimeline(std::shared_ptr<VulkanDevice> device, MovedBy by) : device_(std::move(device)), by_(by) {}
  Result<void> create_semaphore(const void* next);
  void raise(std::uint64_t value) noexcept;
  VkResult ask() noexcept;

  std::shared_ptr<VulkanDevice> device_;
  const MovedBy by_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  bool is_hosts_ = false;                  // the host ends it
  std::atomic<std::uint64_t> reached_{0};  // as far as anybody has seen
  std::atomic<std::uint64_t> scheduled_{0};
  std::optional<device::Turns> turns_;  // of one that is shared
  std::optional<Error> failure_;        // why no value above `scheduled_` will come; under the queue's lock
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
