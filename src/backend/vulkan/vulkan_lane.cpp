#include "backend/vulkan/vulkan_lane.hpp"

#include <algorithm>
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
                        base::text("Device '{}' gives no command pool.", owner.info().id));
  lane->work_->pool = pool;
  return lane;
}

LaneWork::~LaneWork() {
  if (!timeline) return;  // it was not made
  VulkanDevice& device = timeline->device();
  for (Flight* flight : busy) flight->retire(staging);
  flights.clear();
  if (pool != VK_NULL_HANDLE) device.vk.DestroyCommandPool(device.handle(), pool, nullptr);
}

bool LaneWork::has_ended() noexcept {
  return timeline->device().lost() || timeline->reached() >= timeline->scheduled();
}

VulkanLane::~VulkanLane() {
  VulkanDevice& device = vulkan();
  abandon();
  if (!timeline_) return;
  // What is parked goes to the device first, or fails; what the device has must end before its memory goes.
  (void)timeline_->wait(last_, Instant::max());
  device.queue().close(*timeline_);
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
  const std::uint64_t before = last_;
  auto flight = next_flight();
  if (!flight) return std::move(flight).error();
  (*flight)->recording = submission.recording;
  Encoder encoder(*this, **flight, submission);
  auto done = encoder.encode();
  if (done)
    done = launch(*encoder.flight(), encoder.has_commands(), submission.waits, submission.signals);
  else if (encoder.flight())
    discard(*encoder.flight());
  if (done) return last_;
  // Parts of large uploads may have gone ahead: nothing of this submission is left running.
  if (last_ != before) (void)timeline_->wait(last_, Instant::max());
  return std::move(done).error();
}

Result<Flight*> VulkanLane::next_flight() {
  collect(idle_.empty() && !busy_.empty() ? timeline_->reached() : 0);
  if (idle_.empty()) {
    VulkanDevice& device = vulkan();
    auto flight = std::make_unique<Flight>(device);
    flights_.reserve(flights_.size() + 1);
    busy_.reserve(flights_.capacity());
    idle_.reserve(flights_.capacity());
    const VkCommandBufferAllocateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .pNext = nullptr,
                                           .commandPool = work_->pool,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    if (const VkResult r = device.vk.AllocateCommandBuffers(device.handle(), &info, &commands);
        r != VK_SUCCESS)
      return device.failed(r, "vkAllocateCommandBuffers",
                           base::text("Device '{}' gives no command buffer.", device.info().id));
    flight->commands = commands;
    idle_.push_back(flight.get());
    flights_.push_back(std::move(flight));
  }
  Flight* flight = idle_.back();
  idle_.pop_back();
  flight->serial = vulkan().next_serial();
  flight->value = last_ + 1;
  return flight;
}

Result<void> VulkanLane::launch(Flight& flight, bool has_commands,
                                std::span<const device::TimelinePoint> waits,
                                std::span<const device::TimelinePoint> signals) {
  flight.value = last_ + 1;
  flight.promise(timeline_);
  for (const auto points : {waits, signals})
    for (const device::TimelinePoint& point : points)
      if (point.timeline->is_foreign()) flight.others.push_back(point);
  auto taken = vulkan().queue().submit(timeline_, flight.value,
                                       has_commands ? flight.commands : VK_NULL_HANDLE, waits, signals);
  if (!taken) return discard(flight), taken;
  last_ = flight.value;
  busy_.push_back(&flight);
  return {};
}

Result<Flight*> VulkanLane::launch_part(Flight& flight, bool has_commands) {
  auto recording = flight.recording;
  if (auto launched = launch(flight, has_commands, {}, {}); !launched) return std::move(launched).error();
  if (staging_.is_full()) {
    // This one at least will give back what it holds; others may have downloads that nobody has waited for
    // yet.
    const auto oldest = std::find_if(busy_.begin(), busy_.end(), [](const Flight* f) {
      return f->staging.held != 0 && f->downloads.empty();
    });
    const std::uint64_t value = (*oldest)->value;
    if (auto reached = timeline_->wait(value, Instant::max()); !reached) return std::move(reached).error();
    collect(value);
  }
  auto next = next_flight();
  if (next) (*next)->recording = std::move(recording);
  return next;
}

void VulkanLane::discard(Flight& flight) noexcept {
  flight.retire(staging_);
  idle_.push_back(&flight);
}

/// Retires flights that have arrived and brought all they had to bring.
void VulkanLane::collect(std::uint64_t reached) noexcept {
  const auto done = [&](Flight* flight) {
    if (flight->value > reached || !flight->downloads.empty()) return false;
    flight->retire(staging_);
    idle_.push_back(flight);
    return true;
  };
  busy_.erase(std::remove_if(busy_.begin(), busy_.end(), done), busy_.end());
}

Result<void> VulkanLane::wait(std::uint64_t value, Instant until) {
  if (value > last_)
    return Error(
        Errc::invalid_argument,
        base::text("A lane of device '{}' that has submitted up to {} cannot be waited for until {}.",
                   vulkan().info().id, last_, value));
  if (auto reached = timeline_->wait(value, until); !reached) return reached;
  for (Flight* flight : busy_)
    if (flight->value <= value)
      if (auto delivered = flight->deliver(); !delivered) return delivered;
  collect(value);
  return {};
}

void VulkanLane::abandon() noexcept {
  for (Flight* flight : busy_) flight->abandon();
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
