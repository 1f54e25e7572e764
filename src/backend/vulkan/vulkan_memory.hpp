#pragma once
/// The sub-allocator: many buffers in few allocations of the driver.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>

#include "backend/vulkan/range_allocator.hpp"
#include "backend/vulkan/vulkan_adapter.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

class VulkanDevice;

/// One allocation of the driver, and which of its bytes are taken.
struct MemoryBlock {
  MemoryBlock(std::uint32_t memory_type, std::uint64_t bytes)
      : type(memory_type), size(bytes), ranges(bytes) {}
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::byte* host = nullptr;  ///< its first byte, where the host can reach it
  std::uint32_t type;
  std::uint64_t size;
  RangeAllocator ranges;
};

/// A piece of a block.
struct MemoryRange {
  MemoryBlock* block = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::byte* host() const { return block->host ? block->host + offset : nullptr; }
};

/// The memory of one device.
/// Threads: thread-safe. The driver is called without a lock held.
class VulkanMemory {
 public:
  /// Blocks grow from the first to the second size; what is larger than half the second gets one of its own
  /// size.
  static constexpr std::uint64_t first_block = 4u << 20;
  static constexpr std::uint64_t largest_block = 64u << 20;

  explicit VulkanMemory(VulkanDevice& device) : device_(device) {}
  /// Everything has been given back.
  ~VulkanMemory();
  VulkanMemory(const VulkanMemory&) = delete;
  VulkanMemory& operator=(const VulkanMemory&) = delete;

  /// Memory for something with `needs`.
  /// Errors: out_of_memory with the numbers, device_lost.
  Result<MemoryRange> take(const VkMemoryRequirements& needs, device::MemoryUse use);
  /// Gives it back; one empty block per type is kept, others go back to the driver.
  void give(const MemoryRange& range) noexcept;

  /// An allocation for one thing alone, which is not mapped; `next` goes to the driver with it.
  /// Errors: as above.
  Result<std::list<MemoryBlock>> take_alone(const VkMemoryRequirements& needs, const void* next);
  void give_alone(std::list<MemoryBlock>& block) noexcept;

  /// Of one heap: bytes in ranges that are taken, and bytes that the driver gave.
  struct Use {
    std::uint64_t taken = 0;
    std::uint64_t held = 0;
  };
  Use use_of(std::uint32_t heap) const;

 private:
  struct Pool {
    std::list<MemoryBlock> blocks;
    std::uint64_t next_block = first_block;
  };
  Result<MemoryRange> take(std::uint64_t size, std::uint64_t alignment, std::uint32_t type);
  MemoryRange take_of(MemoryBlock& block, std::uint64_t size, std::uint64_t alignment);
  Result<std::list<MemoryBlock>> allocate(std::uint32_t type, std::uint64_t size, const void* next = nullptr);
  Result<void> reserve(std::uint32_t type, std::uint64_t size);
  void end(std::list<MemoryBlock>& blocks) noexcept;
  bool end_spares(std::uint32_t heap) noexcept;
  std::uint32_t heap_of(std::uint32_t type) const;

  VulkanDevice& device_;
  mutable std::mutex mutex_;
  Pool pools_[VK_MAX_MEMORY_TYPES];
  Use heaps_[VK_MAX_MEMORY_HEAPS];
  std::uint32_t allocations_ = 0;
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
