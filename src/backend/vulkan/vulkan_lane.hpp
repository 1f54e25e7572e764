#pragma once
/// One ordered lane: a command pool, a timeline, and the submissions in flight.
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/vulkan/vulkan_batch.hpp"
#include "backend/vulkan/vulkan_device.hpp"
#include "backend/vulkan/vulkan_staging.hpp"
#include "backend/vulkan/vulkan_timeline.hpp"
#include "device/batches.hpp"
#include "device/lane_base.hpp"
#include "device/pending_submissions.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::vulkan {

/// The resources of a lane that the driver may be using. If a lane ends and the driver does not
/// report completion, the device keeps them.
/// Threads: one thread at a time.
struct LaneWork final : device::SubmittingLane {
  explicit LaneWork(VulkanDevice& device) : staging(device) {}
  /// The timeline has reached its last scheduled value, or the device is lost.
  ~LaneWork() override;
  Result<void> submit_to_driver(device::PendingSubmission& submission) override;
  device::ScheduledTimeline& lane_timeline() const noexcept override { return *timeline; }
  /// Returns whether the device has completed all work. Never blocks.
  bool has_ended() noexcept;

  std::shared_ptr<VulkanTimeline> timeline;
  VkCommandPool pool = VK_NULL_HANDLE;
  Staging staging;
  device::Batches<Batch> batches;
  std::unique_ptr<LaneWork> next;
};

/// Threads: one thread at a time.
/// Cost:   a submission like an earlier submission allocates nothing.
class VulkanLane final : public device::LaneBase {
 public:
  static Result<std::unique_ptr<VulkanLane>> create(std::shared_ptr<VulkanDevice> device);
  ~VulkanLane() override;

  Result<std::uint64_t> submit(const device::Submission& submission) override;
  Result<void> wait(std::uint64_t value, Instant until) override;
  void abandon() noexcept override;
  const std::shared_ptr<device::Timeline>& timeline() const noexcept override { return timeline_base_; }

 private:
  friend class Encoder;
  explicit VulkanLane(std::shared_ptr<VulkanDevice> device);
  /// Returns a batch for the next submission.
  Result<Batch*> next_batch();
  /// Submits a recorded batch to the queue, or keeps it pending. Retires it on failure.
  Result<void> launch(Batch& batch, std::span<const device::TimelinePoint> waits,
                      std::span<const device::TimelinePoint> signals);
  /// Launches the beginning of a recording before the rest. Waits until the staging budget allows
  /// more, and returns the next batch.
  Result<Batch*> launch_part(Batch& batch);
  void discard(Batch& batch) noexcept;
  void collect(std::uint64_t reached) noexcept;
  VulkanDevice& vulkan() const noexcept { return static_cast<VulkanDevice&>(*device()); }

  std::unique_ptr<LaneWork> work_;
  std::shared_ptr<VulkanTimeline>& timeline_ = work_->timeline;
  Staging& staging_ = work_->staging;
  device::Batches<Batch>& batches_ = work_->batches;
  std::shared_ptr<device::Timeline> timeline_base_;
  std::uint64_t last_ = 0;  // the value of the last submission
  bool ready_ = false;      // the current submission can be given to the driver at once
  // Scratch memory of encoders, kept between submissions.
  std::vector<std::byte> parameters_;
  std::vector<VkDescriptorBufferInfo> set_;       // by binding, of the current dispatch
  std::vector<VkDescriptorBufferInfo> last_set_;  // of the previous dispatch
  std::vector<VkWriteDescriptorSet> writes_;
};

}  // namespace wye::vulkan
