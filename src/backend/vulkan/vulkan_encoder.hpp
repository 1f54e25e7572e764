#pragma once
/// Encodes a recording as a command buffer.
#include <cstdint>
#include <vector>

#include "backend/vulkan/vulkan_executable.hpp"
#include "backend/vulkan/vulkan_lane.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye::inline v0::vulkan {

/// Encodes one submission. Its barriers are those of the recording, each for all memory. One more
/// barrier before the first command orders the submission after all earlier submissions of the
/// queue. This is cheaper than a wait for the lane's last value, which takes a round trip through
/// the scheduler of a GPU driver.
/// Threads: one thread at a time.
class Encoder {
 public:
  Encoder(VulkanLane& lane, Batch& batch, const device::Submission& submission);

  /// Errors: out_of_memory, device_lost, and those of `VulkanExecutable::row_pipeline`.
  Result<void> encode();
  /// Returns the batch with the end of the recording; null if there is none any more.
  Batch* batch() const noexcept { return batch_; }

 private:
  /// The bytes [offset, offset + bytes) of a buffer.
  struct Range {
    VulkanBuffer* buffer = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  Result<void> encode(const device::Command& command);
  Result<void> upload(const std::byte* source, const Range& to, const Operand& operand);
  Result<void> download(const Range& from, std::byte* target);
  Result<void> stage_download(const Range& from, std::byte* target);
  Result<void> copy(const Range& from, const Range& to);
  Result<void> fill(std::uint32_t pattern, const Range& to);
  Result<void> transfer(const Range& memory, std::uint32_t from, std::uint32_t to);
  Result<void> dispatch(const device::Command& command);
  void dispatch_rows(std::uint64_t groups);
  Result<void> stamp(const device::Command& command);
  Result<void> pass(const VulkanExecutable& executable, std::size_t slot, const Operand& operand);
  Result<void> bind(const VulkanExecutable& executable, VkPipeline pipeline);
  Result<void> bind_set(const VulkanExecutable& executable);
  Result<void> launch_part();
  Result<void> finish();

  Range range_of(const Operand& operand) const;
  Result<void> before_write(VulkanBuffer& buffer);
  Result<void> before_command();
  void barrier(VkPipelineStageFlags stages, VkAccessFlags access);
  void copy_bytes(VulkanBuffer& from, std::uint64_t from_offset, VulkanBuffer& to, std::uint64_t to_offset,
                  std::uint64_t bytes);

  VulkanLane& lane_;
  VulkanDevice& device_;
  Batch* batch_;
  const device::Submission& submission_;
  const bool ready_;     // all waits are submitted, or reached if they are foreign
  bool leading_ = true;  // all commands so far are uploads
  bool begun_ = false;
  bool pending_ = true;                      // a barrier goes before the next command
  VkPipeline pipeline_ = VK_NULL_HANDLE;     // the bound pipeline
  const VulkanExecutable* bound_ = nullptr;  // its executable; `lane_.last_set_` has its set
};

}  // namespace wye::vulkan
