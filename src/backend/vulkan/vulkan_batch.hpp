#pragma once
/// One submission in flight: its resources, and the work that remains when it completes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/vulkan/vulkan_buffer.hpp"
#include "backend/vulkan/vulkan_descriptors.hpp"
#include "backend/vulkan/vulkan_staging.hpp"
#include "device/pending_submissions.hpp"
#include "device/recording.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::vulkan {

/// A command buffer and all its resources until the device has completed it. A lane reuses batches.
/// Threads: one thread at a time, with its lane.
struct Batch : device::PendingSubmission {
  explicit Batch(VulkanDevice& device) : sets(device) {}

  /// A copy to the host that has not happened yet.
  struct Download {
    VulkanBuffer* from = nullptr;  ///< a staging chunk, or the buffer itself
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    bool in_place = false;  ///< directly from the buffer
  };

  /// A copy from the host in place, before the batch is launched.
  struct Upload {
    VulkanBuffer* to = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    const std::byte* source = nullptr;
  };

  /// Counts this batch once in the uses of a buffer, and keeps the buffer alive.
  void use(VulkanBuffer& buffer, const std::shared_ptr<device::Retained>& handle);
  /// Performs the uploads in place.
  Result<void> write();
  /// Registers the downloads in place with their buffers.
  void register_downloads(const std::shared_ptr<VulkanTimeline>& timeline);
  /// Performs all downloads. `value` has been reached.
  Result<void> deliver();
  /// Discards all downloads.
  void abandon() noexcept;
  /// Releases all resources. The device has completed the batch, or never began it.
  void retire(Staging& staging) noexcept;

  VkCommandBuffer commands = VK_NULL_HANDLE;
  bool has_commands = false;  ///< false: the device has no work in it
  std::uint64_t serial = 0;   ///< unique among the submissions of the device
  std::shared_ptr<const device::Recording> recording;
  std::vector<std::shared_ptr<VulkanBuffer>> buffers;
  std::vector<device::TimelinePoint> signals;  ///< foreign timelines
  std::vector<Upload> uploads;
  std::vector<Download> downloads;
  StagingUse staging;
  DescriptorSets sets;
};

}  // namespace wye::vulkan
