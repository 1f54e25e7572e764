#pragma once
/// An opened physical device: one VkDevice with one queue, shared by all lanes.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/vulkan/vulkan_adapter.hpp"
#include "backend/vulkan/vulkan_clearing.hpp"
#include "backend/vulkan/vulkan_dispatch.hpp"
#include "backend/vulkan/vulkan_loader.hpp"
#include "backend/vulkan/vulkan_memory.hpp"
#include "backend/vulkan/vulkan_queue.hpp"
#include "device/artefact.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/executable.hpp"
#include "device/lane_base.hpp"
#include "device/native.hpp"
#include "device/pending_submissions.hpp"
#include "device/timeline.hpp"
#include "device/timeline_waiter.hpp"
#include "device/unfinished_work.hpp"

namespace wye::inline v0::vulkan {

struct LaneWork;

/// Threads: thread-safe.
class VulkanDevice final : public device::DeviceBase, private device::NativeInterop {
 public:
  /// Errors: unavailable, unsupported, out_of_memory, with the driver's code.
  static Result<std::shared_ptr<VulkanDevice>> open(std::shared_ptr<VulkanInstance> instance,
                                                    const PhysicalDevice& physical,
                                                    const VulkanOptions& options);
  /// Adopts a VkDevice of the application, which keeps it.
  static Result<std::shared_ptr<VulkanDevice>> adopt(std::shared_ptr<VulkanInstance> instance,
                                                     const PhysicalDevice& physical,
                                                     const VulkanOptions& options, const NativeDevice& host);
  /// Lanes, buffers and executables have ended, because each keeps its device alive.
  ~VulkanDevice() override;

  std::span<const std::string_view> languages() const noexcept override;
  MemoryInfo memory() override;
  bool has_unified_memory() const noexcept override { return physical_.unified; }
  void release_spare_memory() noexcept override;
  Bytes empty_allocations(const std::function<void()>& move) noexcept override {
    return Bytes{memory_->empty_blocks(move)};
  }
  const Error* ended_by() const noexcept override { return lost_.load(std::memory_order_acquire); }
  Result<std::vector<std::byte>> driver_code() override;
  Result<void> preload(std::span<const std::byte> code) override;
  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest& request) override;
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(
      const device::Artefact& artefact) override;
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions&) override;
  Result<std::shared_ptr<device::StampsBase>> create_stamps() override;
  Result<std::shared_ptr<device::Timeline>> create_timeline() override;
  device::NativeInterop* native_interop() noexcept override { return this; }

  DeviceTable vk;
  VkDevice handle() const noexcept { return handle_; }
  /// Returns the driver's pipeline cache; null if the driver has no memory for it. The cache only
  /// saves time.
  /// Errors: device_lost.
  Result<VkPipelineCache> pipelines();
  const PhysicalDevice& physical() const noexcept { return physical_; }
  const VulkanOptions& options() const noexcept { return options_; }
  VulkanQueue& queue() noexcept { return *queue_; }
  device::PendingSubmissions& pending() noexcept { return pending_; }
  VulkanMemory& heap() noexcept { return *memory_; }
  VulkanClearing& clearing() noexcept { return *clearing_; }
  /// Returns whether shared buffers need dedicated memory.
  /// Errors: unsupported (the driver lacks a feature of `wanted`).
  Result<bool> shares_buffers(VkExternalMemoryFeatureFlags wanted) const;
  /// Checks that timelines can be shared with another driver.
  /// Errors: unsupported.
  Result<void> shares_timelines() const;
  std::shared_ptr<VulkanDevice> self() { return std::static_pointer_cast<VulkanDevice>(shared_from_this()); }

  /// Returns the unfinished work of lanes that have ended. It keeps this device alive.
  device::UnfinishedWork<LaneWork>& unfinished() noexcept { return unfinished_; }

  /// Makes the error of a failed driver call. VK_ERROR_DEVICE_LOST ends the device.
  Error failed(VkResult result, const char* api, std::string sentence, Place place = Place::here());
  /// Marks the device as lost. All later calls return the error that this returns.
  const Error& lose(const char* api, Place place = Place::here()) noexcept;

 private:
  VulkanDevice(std::shared_ptr<VulkanInstance> instance, const PhysicalDevice& physical,
               const VulkanOptions& options);
  Result<void> create();
  Result<void> use(VkDevice device, VkQueue queue, const NativeLock& lock);
  NativeDevice native_device() override;
  NativeMemory native_memory(device::BufferBase& buffer) override;
  Result<NativePoint> native_point(device::Timeline& timeline, std::uint64_t value) override;
  Result<void> follow(std::uint64_t queue, device::Timeline& timeline, std::uint64_t value) override;
  Result<std::shared_ptr<device::BufferBase>> adopt_memory(const NativeMemory& memory,
                                                           Release release) override;
  Result<std::shared_ptr<device::Timeline>> adopt_timeline(const NativePoint& point) override;
  Result<device::SharedBufferBase> create_shared(Bytes bytes) override;
  Result<std::shared_ptr<device::BufferBase>> open_shared(device::SharedMemory& memory, Bytes bytes) override;
  Result<device::SharedTimeline> create_shared_timeline() override;
  Result<std::shared_ptr<device::Timeline>> open_shared_timeline(device::SharedTimeline& original) override;
  Result<VkPipelineCache> make_pipelines(std::span<const std::byte> code);

  std::shared_ptr<VulkanInstance> instance_;
  PhysicalDevice physical_;
  VulkanOptions options_;
  VkDevice handle_ = VK_NULL_HANDLE;
  bool is_adopted_ = false;  // the application destroys it
  device::TimelineWaiter waiter_{"wye-vk-wait", device::TimelineWaiter::Sleep::in_driver};
  device::PendingSubmissions pending_{*this, waiter_};
  std::optional<VulkanQueue> queue_;
  std::optional<VulkanMemory> memory_;
  std::optional<VulkanClearing> clearing_;
  std::atomic<VkPipelineCache> pipelines_{VK_NULL_HANDLE};
  device::UnfinishedWork<LaneWork> unfinished_;
  std::mutex lost_mutex_;
  Error lost_error_;  // written once, under the mutex
  std::atomic<const Error*> lost_{nullptr};
};

}  // namespace wye::vulkan
