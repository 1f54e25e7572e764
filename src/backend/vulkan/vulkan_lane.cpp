#include "backend/vulkan/vulkan_lane.hpp"

#include <utility>

#include "backend/vulkan/vulkan_encoder.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

VulkanLane::VulkanLane(std::shared_ptr<VulkanDevice> device)
    : LaneBase(std::move(device)), work_(std::make_unique<LaneWork>(vulkan())) {}

Result<std::unique_ptr<VulkanLane>> VulkanLane::create(std::shared_ptr<VulkanDevice> device) {
  device->unfinished().collect();
  if (const Error* lost = device->lost()) return *lost;
  std::unique_ptr<VulkanLane> lane(new VulkanLane(std::move(device)));
  VulkanDevice& owner = lane->vulkan();
  auto timeline = VulkanTimeline::create(owner.self(), VulkanTimeline::MovedBy::lane);
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
  for (Flight* flight : flights.in_flight()) flight->retire(staging);
  flights.clear();
  if (pool != VK_NULL_HANDLE) device.vk.DestroyCommandPool(device.handle(), pool, nullptr);
}

Result<void> LaneWork::give(device::PendingSubmission& submission) {
  const auto& flight = static_cast<const Flight&>(submission);
  return timeline->device().queue().submit(*timeline, flight.value,
                                           flight.has_commands ? flight.commands : VK_NULL_HANDLE,
                                           flight.waits, flight.signals);
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
  for (const device::TimelinePoint& point : submission.waits)
    if (!point.timeline || point.timeline->owner() != device().get())
      return Error(Errc::invalid_argument,
                   base::text("A lane of device '{}' cannot wait for a timeline of another device.",
                              vulkan().info().id));
  for (const device::TimelinePoint& point : submission.signals)
    if (!point.timeline || point.timeline->owner() != device().get() || !point.timeline->is_foreign())
      return Error(Errc::invalid_argument,
                   base::text("A lane of device '{}' cannot signal a timeline that was not brought to it.",
                              vulkan().info().id));
  auto ready = vulkan().pending().ready(*work_, submission.waits);
  if (!ready) return std::move(ready).error();
  ready_ = *ready;
  const std::uint64_t before = last_;
  auto flight = next_flight();
  if (!flight) return std::move(flight).error();
  (*flight)->recording = submission.recording;
  Encoder encoder(*this, **flight, submission);
  auto done = encoder.encode();
  if (done)
    done = launch(*encoder.flight(), submission.waits, submission.signals);
  else if (encoder.flight())
    discard(*encoder.flight());
  if (done) return last_;
  // Parts of large uploads may be running already. No part of a failed submission may be left running.
  if (last_ != before) (void)timeline_->wait(last_, Instant::max());
  return std::move(done).error();
}

Result<Flight*> VulkanLane::next_flight() {
  collect(!flights_.has_idle() && !flights_.in_flight().empty() ? timeline_->reached() : 0);
  auto flight = flights_.take([this]() -> Result<std::unique_ptr<Flight>> {
    VulkanDevice& device = vulkan();
    auto made = std::make_unique<Flight>(device);
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
  if (!flight) return flight;
  (*flight)->serial = vulkan().next_serial();
  (*flight)->value = last_ + 1;
  return flight;
}

Result<void> VulkanLane::launch(Flight& flight, std::span<const device::TimelinePoint> waits,
                                std::span<const device::TimelinePoint> signals) {
  flight.value = last_ + 1;
  flight.register_downloads(timeline_);
  flight.waits.assign(waits.begin(), waits.end());
  flight.signals.assign(signals.begin(), signals.end());
  device::PendingSubmissions& pending = vulkan().pending();
  if (auto taken = ready_ ? work_->give(flight) : pending.add(*work_, flight); !taken)
    return discard(flight), taken;
  if (ready_) pending.given(*work_, flight.value);
  last_ = flight.value;
  flights_.start(flight);
  return {};
}

Result<Flight*> VulkanLane::launch_part(Flight& flight) {
  auto recording = flight.recording;
  if (auto launched = launch(flight, {}, {}); !launched) return std::move(launched).error();
  if (staging_.is_full()) {
    // This flight releases its staging memory at its value. Other flights may have downloads that no caller
    // has waited for.
    const std::uint64_t value = flights_.first_with_staging()->value;
    if (auto reached = timeline_->wait(value, Instant::max()); !reached) return std::move(reached).error();
    collect(value);
  }
  auto next = next_flight();
  if (next) (*next)->recording = std::move(recording);
  return next;
}

void VulkanLane::discard(Flight& flight) noexcept {
  flight.retire(staging_);
  flights_.give_back(flight);
}

/// Retires flights that have completed and whose downloads were delivered.
void VulkanLane::collect(std::uint64_t reached) noexcept {
  flights_.collect(reached, [this](Flight& flight) { flight.retire(staging_); });
}

Result<void> VulkanLane::wait(std::uint64_t value, Instant until) {
  if (value > last_)
    return Error(
        Errc::invalid_argument,
        base::text("A lane of device '{}' that has submitted up to {} cannot be waited for until {}.",
                   vulkan().info().id, last_, value));
  if (auto reached = timeline_->wait(value, until); !reached) return reached;
  for (Flight* flight : flights_.in_flight())
    if (flight->value <= value)
      if (auto delivered = flight->deliver(); !delivered) return delivered;
  collect(value);
  return {};
}

void VulkanLane::abandon() noexcept {
  for (Flight* flight : flights_.in_flight()) flight->abandon();
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
