#include "backend/vulkan/vulkan_lane.hpp"

#include <cassert>
#include <utility>

#include "backend/vulkan/vulkan_encoder.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {

VulkanLane::VulkanLane(std::shared_ptr<VulkanDevice> device)
    : LaneBase(std::move(device)), work_(std::make_unique<LaneWork>(vulkan())) {}

Result<std::unique_ptr<VulkanLane>> VulkanLane::create(std::shared_ptr<VulkanDevice> device) {
  device->unfinished().collect();
  if (const Error* lost = device->lost()) return *lost;
  std::unique_ptr<VulkanLane> lane(new VulkanLane(std::move(device)));
  VulkanDevice& owner = lane->vulkan();
  auto timeline = VulkanTimeline::create(owner.self(), VulkanTimeline::SignaledBy::lane);
  if (!timeline) return std::move(timeline).error();
  lane->timeline_ = *timeline;
  lane->timeline_base_ = *timeline;
  const VkCommandPoolCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .pNext = nullptr,
      .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT | VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
      .queueFamilyIndex = owner.physical().queue_family};
  VkCommandPool pool = VK_NULL_HANDLE;
  if (const VkResult r = owner.vk.CreateCommandPool(owner.handle(), &info, nullptr, &pool); r != VK_SUCCESS)
    return owner.failed(r, "vkCreateCommandPool",
                        base::text("Device '{}' cannot create a command pool.", owner.info().id));
  lane->work_->pool = pool;
  return lane;
}

LaneWork::~LaneWork() {
  if (!timeline) return;  // its creation failed
  VulkanDevice& device = timeline->device();
  for (Batch* batch : batches.in_flight()) batch->retire(staging);
  batches.clear();
  if (pool != VK_NULL_HANDLE) device.vk.DestroyCommandPool(device.handle(), pool, nullptr);
}

Result<void> LaneWork::submit_to_driver(device::PendingSubmission& submission) {
  const auto& batch = static_cast<const Batch&>(submission);
  return timeline->device().queue().submit(timeline->semaphore(), batch.value,
                                           batch.has_commands ? batch.commands : VK_NULL_HANDLE, batch.waits,
                                           batch.signals);
}

bool LaneWork::has_ended() noexcept {
  return timeline->device().lost() || timeline->reached() >= timeline->scheduled();
}

VulkanLane::~VulkanLane() {
  VulkanDevice& device = vulkan();
  abandon();
  if (!timeline_) return;
  // Pending work is submitted or fails. Submitted work must complete before its memory is freed.
  (void)timeline_->wait(last_, Instant::max());
  device.pending().close(*work_);
  if (!timeline_->wait(timeline_->scheduled(), Instant::max()) && !device.lost())
    device.unfinished().add(std::move(work_));
}

Result<std::uint64_t> VulkanLane::submit(const device::Submission& submission) {
  if (const Error* lost = vulkan().lost()) return *lost;
  auto ready = vulkan().pending().ready(*work_, submission.waits);
  if (!ready) return std::move(ready).error();
  ready_ = *ready;
  const std::uint64_t before = last_;
  auto batch = next_batch();
  if (!batch) return std::move(batch).error();
  (*batch)->recording = submission.recording;
  Encoder encoder(*this, **batch, submission);
  auto done = encoder.encode();
  if (done)
    done = launch(*encoder.batch(), submission.waits, submission.signals);
  else if (encoder.batch())
    discard(*encoder.batch());
  if (done) return last_;
  // Parts of large uploads may be running already. No part of a failed submission may be left
  // running.
  if (last_ != before) (void)timeline_->wait(last_, Instant::max());
  return std::move(done).error();
}

Result<Batch*> VulkanLane::next_batch() {
  collect(!batches_.has_idle() && !batches_.in_flight().empty() ? timeline_->reached() : 0);
  auto batch = batches_.take([this]() -> Result<std::unique_ptr<Batch>> {
    VulkanDevice& device = vulkan();
    auto made = std::make_unique<Batch>(device);
    const VkCommandBufferAllocateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .pNext = nullptr,
                                           .commandPool = work_->pool,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    if (const VkResult r = device.vk.AllocateCommandBuffers(device.handle(), &info, &commands);
        r != VK_SUCCESS)
      return device.failed(r, "vkAllocateCommandBuffers",
                           base::text("Device '{}' cannot allocate a command buffer.", device.info().id));
    made->commands = commands;
    return made;
  });
  if (!batch) return batch;
  (*batch)->serial = vulkan().queue().next_serial();
  (*batch)->value = last_ + 1;
  return batch;
}

Result<void> VulkanLane::launch(Batch& batch, std::span<const device::TimelinePoint> waits,
                                std::span<const device::TimelinePoint> signals) {
  batch.value = last_ + 1;
  batch.register_downloads(timeline_);
  batch.waits.assign(waits.begin(), waits.end());
  batch.signals.assign(signals.begin(), signals.end());
  device::PendingSubmissions& pending = vulkan().pending();
  if (auto taken = ready_ ? work_->submit_to_driver(batch) : pending.add(*work_, batch); !taken)
    return discard(batch), taken;
  if (ready_) pending.submitted(*work_, batch.value);
  last_ = batch.value;
  batches_.start(batch);
  return {};
}

Result<Batch*> VulkanLane::launch_part(Batch& batch) {
  auto recording = batch.recording;
  if (auto launched = launch(batch, {}, {}); !launched) return std::move(launched).error();
  if (staging_.is_full()) {
    // This batch releases its staging memory at its value. Other batches may have downloads that no
    // caller has waited for.
    const std::uint64_t value = batches_.first_with_staging()->value;
    if (auto reached = timeline_->wait(value, Instant::max()); !reached) return std::move(reached).error();
    collect(value);
  }
  auto next = next_batch();
  if (next) (*next)->recording = std::move(recording);
  return next;
}

void VulkanLane::discard(Batch& batch) noexcept {
  batch.retire(staging_);
  batches_.give_back(batch);
}

/// Retires batches that have completed and whose downloads were delivered.
void VulkanLane::collect(std::uint64_t reached) noexcept {
  batches_.collect(reached, [this](Batch& batch) { batch.retire(staging_); });
}

Result<void> VulkanLane::wait(std::uint64_t value, Instant until) {
  assert(value <= last_);
  if (auto reached = timeline_->wait(value, until); !reached) return reached;
  for (Batch* batch : batches_.in_flight())
    if (batch->value <= value)
      if (auto delivered = batch->deliver(); !delivered) return delivered;
  collect(value);
  return {};
}

void VulkanLane::abandon() noexcept {
  for (Batch* batch : batches_.in_flight()) batch->abandon();
}

}  // namespace wye::vulkan
