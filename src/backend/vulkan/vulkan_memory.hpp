#pragma once
/// The sub-allocator: places many buffers in few allocations of the driver.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

#include "backend/vulkan/range_allocator.hpp"
#include "backend/vulkan/vulkan_adapter.hpp"

namespace wye::inline v0::vulkan {

class VulkanDevice;

/// One allocation of the driver, and its allocated ranges.
struct MemoryBlock {
  MemoryBlock(std::uint32_t memory_type, std::uint64_t bytes)
      : type(memory_type), size(bytes), ranges(bytes) {}
  VkDeviceMemory memory = VK_NULL_HANDLE;
  std::byte* host = nullptr;  ///< its first byte; null if it is not mapped
  std::uint32_t type;
  std::uint64_t size;
  RangeAllocator ranges;
};

/// A range of a block.
struct MemoryRange {
  MemoryBlock* block = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t id = 0;  ///< in the block
  std::byte* host() const { return block->host ? block->host + offset : nullptr; }
};

/// The memory of one device.
/// Threads: thread-safe. The driver is called without a lock held.
class VulkanMemory {
 public:
  /// Blocks grow from the first to the second size. A range larger than half of the second gets its
  /// own block.
  static constexpr std::uint64_t first_block = 4u << 20;
  static constexpr std::uint64_t largest_block = 64u << 20;

  explicit VulkanMemory(VulkanDevice& device) : device_(device) {}
  /// All ranges have been freed.
  ~VulkanMemory();
  VulkanMemory(const VulkanMemory&) = delete;
  VulkanMemory& operator=(const VulkanMemory&) = delete;

  /// Allocates a range that satisfies `needs`.
  /// Errors: out_of_memory with the sizes, device_lost.
  /// `only_spare`: takes it from the blocks that there are.
  Result<MemoryRange> allocate_range(const VkMemoryRequirements& needs, device::MemoryUse use,
                                     bool only_spare = false);
  /// Frees a range. Keeps one empty block per type and frees the others.
  void free_range(const MemoryRange& range) noexcept;
  /// Empties blocks, the emptiest first, whose ranges the other blocks of their type may have room
  /// for: calls `move` to free ranges in the block that `is_emptied`, and frees the block if none
  /// is left. One thread at a time. Returns the bytes of the freed blocks.
  std::uint64_t empty_blocks(const std::function<void()>& move) noexcept;
  bool is_emptied(const MemoryBlock* block) const noexcept {
    return block && emptied_.load(std::memory_order_relaxed) == block;
  }

  /// Allocates an unmapped block for a single buffer. `next` extends the driver's allocate info.
  /// Errors: as `allocate_range`.
  Result<std::list<MemoryBlock>> allocate_dedicated(const VkMemoryRequirements& needs, const void* next);
  void free_dedicated(std::list<MemoryBlock>& block) noexcept;

  /// The bytes of one heap in allocated ranges, and in blocks.
  struct Use {
    std::uint64_t taken = 0;
    std::uint64_t held = 0;
  };
  Use use_of(std::uint32_t heap) const;
  /// Frees the empty blocks of a heap. Returns false if there are none.
  bool free_spare_blocks(std::uint32_t heap) noexcept;

 private:
  struct Pool {
    std::list<MemoryBlock> blocks;
    std::uint64_t next_block = first_block;
  };
  Result<MemoryRange> allocate_range(std::uint64_t size, std::uint64_t alignment, std::uint32_t type,
                                     bool only_spare);
  void take_block_locked(MemoryBlock& block, std::list<MemoryBlock>& to) noexcept;
  MemoryBlock* next_to_empty_locked(const std::vector<const MemoryBlock*>& tried) noexcept;
  MemoryRange allocate_from(MemoryBlock& block, std::uint64_t size, std::uint64_t alignment);
  Result<std::list<MemoryBlock>> allocate(std::uint32_t type, std::uint64_t size, const void* next = nullptr);
  Result<void> reserve(std::uint32_t type, std::uint64_t size);
  void free_blocks(std::list<MemoryBlock>& blocks) noexcept;
  std::uint32_t heap_of(std::uint32_t type) const;

  VulkanDevice& device_;
  mutable std::mutex mutex_;
  Pool pools_[VK_MAX_MEMORY_TYPES];
  Use heaps_[VK_MAX_MEMORY_HEAPS];
  std::uint32_t allocations_ = 0;
  std::atomic<const MemoryBlock*> emptied_{nullptr};  // changed under the mutex; gets no new range
};

}  // namespace wye::vulkan
