#pragma once
/// Turns a recording into a command buffer.
#include <cstdint>
#include <vector>

#include "backend/vulkan/vulkan_executable.hpp"
#include "backend/vulkan/vulkan_lane.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Encodes one submission. Barriers are those the recording has planned, each for all memory, and one before
/// the first command, which orders the submission behind all that the queue was given before: that is cheaper
/// than to wait for the lane's own last value, a round trip through the scheduler of a real driver.
/// Threads: one thread at a time.
class Encoder {
 public:
  Encoder(VulkanLane& lane, Batch& batch, const device::Submission& submission);

  /// Errors: out_of_memory, device_lost, invalid_argument and unsupported, naming the slot.
  Result<void> encode();
  /// The batch that the end of the recording went into; null where there is none any more.
  Batch* batch() const noexcept { return batch_; }

 private:
  /// Bytes [offset, offset + bytes) of a buffer.
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
  Result<void> pass(const VulkanExecutable& executable, std::size_t slot, const Operand& operand);
  Result<void> bind(const VulkanExecutable& executable, VkPipeline pipeline);
  Result<void> bind_set(const VulkanExecutable& executable);
  Result<void> go_ahead();
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
  const bool ready_;     // every wait of this submission is given to the queue, or reached if it is foreign
  bool leading_ = true;  // only uploads so far
  bool begun_ = false;
  bool pending_ = true;                      // a barrier goes before the next command
  VkPipeline pipeline_ = VK_NULL_HANDLE;     // the bound one
  const VulkanExecutable* bound_ = nullptr;  // whose it is, with `lane_.last_set_` where it has a set
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
