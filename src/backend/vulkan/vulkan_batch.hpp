#pragma once
/// One submission on its way: what it uses, and what is left to do when it arrives.
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

namespace wye {
inline namespace v0 {
namespace vulkan {

/// A command buffer and everything it needs until the device is done with it. A lane uses batches again.
/// Threads: one thread at a time, with its lane.
struct Batch : device::PendingSubmission {
  explicit Batch(VulkanDevice& device) : sets(device) {}

  /// A copy to the host that is outstanding.
  struct Download {
    VulkanBuffer* from = nullptr;  ///< a staging chunk, or the buffer itself
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    bool in_place = false;  ///< straight out of the buffer
  };

  /// A copy from the host that is done in place, before the batch is launched.
  struct Upload {
    VulkanBuffer* to = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    const std::byte* source = nullptr;
  };

  /// Counts this batch among the uses of a buffer, once, and keeps it.
  void use(VulkanBuffer& buffer, const std::shared_ptr<device::Retained>& handle);
  /// Does the uploads that are done in place.
  Result<void> write();
  /// Announces the downloads that are done in place.
  void promise(const std::shared_ptr<VulkanTimeline>& timeline);
  /// Does all downloads: `value` has been reached.
  Result<void> deliver();
  /// Gives up all downloads.
  void abandon() noexcept;
  /// Lets go of everything: the device is done, or never began.
  void retire(Staging& staging) noexcept;

  VkCommandBuffer commands = VK_NULL_HANDLE;
  bool has_commands = false;  ///< else the device has nothing to do in it
  std::uint64_t serial = 0;   ///< different for every submission of the device
  std::shared_ptr<const device::Recording> recording;
  std::vector<std::shared_ptr<VulkanBuffer>> buffers;
  std::vector<device::TimelinePoint> signals;  ///< foreign timelines
  std::vector<Upload> uploads;
  std::vector<Download> downloads;
  StagingUse staging;
  DescriptorSets sets;
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
