#include "backend/vulkan/vulkan_memory.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "backend/vulkan/vulkan_device.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {

VulkanMemory::~VulkanMemory() {
  for (Pool& pool : pools_) free_blocks(pool.blocks);
}

std::uint32_t VulkanMemory::heap_of(std::uint32_t type) const {
  return device_.physical().memory.memoryTypes[type].heapIndex;
}

Result<MemoryRange> VulkanMemory::allocate_range(const VkMemoryRequirements& needs, device::MemoryUse use,
                                                 bool only_spare) {
  // Flushed ranges must not share an atom with adjacent ranges.
  const std::uint64_t alignment = std::max<std::uint64_t>(needs.alignment, device_.physical().atom);
  if (needs.size > ~std::uint64_t{0} - alignment)
    return Error(Errc::out_of_memory,
                 base::text("Allocation ({} bytes) exceeds what 64 bits can count.", needs.size));
  const std::uint64_t size = (needs.size + alignment - 1) & ~(alignment - 1);
  std::optional<Error> first;
  for (const std::uint32_t type : device_.physical().types.of(use)) {
    if ((needs.memoryTypeBits & (1u << type)) == 0) continue;
    auto range = allocate_range(size, alignment, type, only_spare);
    if (range || range.error() != Errc::out_of_memory) return range;
    if (!first) first = std::move(range).error();  // the error of the preferred type
  }
  if (first) return *std::move(first);
  return Error(Errc::internal, base::text("Device '{}' has no memory type for buffers.", device_.info().id));
}

Result<MemoryRange> VulkanMemory::allocate_range(std::uint64_t size, std::uint64_t alignment,
                                                 std::uint32_t type, bool only_spare) {
  Pool& pool = pools_[type];
  std::uint64_t wanted = size;
  {
    const std::lock_guard lock(mutex_);
    for (MemoryBlock& block : pool.blocks)
      if (const MemoryRange range = allocate_from(block, size, alignment); range.block) return range;
    if (size <= largest_block / 2) wanted = std::max(size, pool.next_block);
  }
  if (only_spare)
    return Error(Errc::out_of_memory, base::text("No spare memory of device '{}' has {} bytes together.",
                                                 device_.info().id, size));
  auto made = allocate(type, wanted);
  while (!made && made.error() == Errc::out_of_memory) {
    if (!free_spare_blocks(heap_of(type))) {
      if (wanted == size) break;
      wanted = std::max(size, wanted / 2);  // a smaller block may still fit
    }
    made = allocate(type, wanted);
  }
  if (!made) return std::move(made).error();
  const std::lock_guard lock(mutex_);
  pool.blocks.splice(pool.blocks.begin(), *made);
  if (wanted != size) pool.next_block = std::min(largest_block, wanted * 2);
  return allocate_from(pool.blocks.front(), size, alignment);
}

MemoryRange VulkanMemory::allocate_from(MemoryBlock& block, std::uint64_t size, std::uint64_t alignment) {
  if (is_emptied(&block)) return {};
  const auto range = block.ranges.allocate(size, alignment);
  if (!range) return {};
  heaps_[heap_of(block.type)].taken += size;
  return {&block, range->offset, size, range->id};
}

/// Counts an allocation before it is made.
Result<void> VulkanMemory::reserve(std::uint32_t type, std::uint64_t size) {
  const PhysicalDevice& physical = device_.physical();
  const std::uint64_t heap = physical.memory.memoryHeaps[heap_of(type)].size;
  const std::lock_guard lock(mutex_);
  Use& use = heaps_[heap_of(type)];
  if (size > physical.largest_allocation)
    return Error(Errc::out_of_memory,
                 base::text("Allocation ({} bytes) exceeds the limit of device '{}' ({} bytes).", size,
                            device_.info().id, physical.largest_allocation));
  if (size > heap || use.held > heap - size)
    return Error(
        Errc::out_of_memory,
        base::text(
            "Allocation ({} bytes) does not fit into the heap of device '{}' now ({} of {} bytes in use).",
            size, device_.info().id, use.held, heap));
  if (allocations_ >= physical.most_allocations)
    return Error(Errc::out_of_memory, base::text("Device '{}' allows no more allocations now ({} of {}).",
                                                 device_.info().id, allocations_, physical.most_allocations));
  ++allocations_;
  use.held += size;
  return {};
}

Result<std::list<MemoryBlock>> VulkanMemory::allocate_dedicated(const VkMemoryRequirements& needs,
                                                                const void* next) {
  for (const std::uint32_t type : device_.physical().types.of(device::MemoryUse::device)) {
    if ((needs.memoryTypeBits & (1u << type)) == 0) continue;
    auto made = allocate(type, needs.size, next);
    if (!made) return made;  // both drivers must choose the same memory type
    const std::lock_guard lock(mutex_);
    heaps_[heap_of(type)].taken += needs.size;
    return made;
  }
  return Error(Errc::unsupported,
               base::text("Device '{}' has no memory type for shared buffers.", device_.info().id));
}

void VulkanMemory::free_dedicated(std::list<MemoryBlock>& block) noexcept {
  {
    const std::lock_guard lock(mutex_);
    for (const MemoryBlock& one : block) heaps_[heap_of(one.type)].taken -= one.size;
  }
  free_blocks(block);
}

Result<std::list<MemoryBlock>> VulkanMemory::allocate(std::uint32_t type, std::uint64_t size,
                                                      const void* next) {
  std::list<MemoryBlock> made;
  MemoryBlock& block = made.emplace_back(type, size);
  if (auto reserved = reserve(type, size); !reserved) return std::move(reserved).error();
  const auto give_up = [&](VkResult result, const char* api) {
    free_blocks(made);
    return device_.failed(
        result, api,
        base::text("Device '{}' has no room for an allocation now ({} bytes, {} bytes in use).",
                   device_.info().id, size, use_of(heap_of(type)).held));
  };
  const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                        .pNext = next,
                                        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
                                        .deviceMask = 0};
  const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = &flags,
                                  .allocationSize = size,
                                  .memoryTypeIndex = type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  if (const VkResult r = device_.vk.AllocateMemory(device_.handle(), &info, nullptr, &memory);
      r != VK_SUCCESS)
    return give_up(r, "vkAllocateMemory");
  block.memory = memory;
  const VkMemoryPropertyFlags properties = device_.physical().memory.memoryTypes[type].propertyFlags;
  if (!next && (properties & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0) {
    void* mapped = nullptr;
    if (const VkResult r = device_.vk.MapMemory(device_.handle(), memory, 0, VK_WHOLE_SIZE, 0, &mapped);
        r != VK_SUCCESS)
      return give_up(r, "vkMapMemory");
    block.host = static_cast<std::byte*>(mapped);
  }
  return made;
}

void VulkanMemory::free_range(const MemoryRange& range) noexcept {
  std::list<MemoryBlock> empty;
  {
    const std::lock_guard lock(mutex_);
    MemoryBlock& block = *range.block;
    std::list<MemoryBlock>& blocks = pools_[block.type].blocks;
    block.ranges.free(range.id);
    heaps_[heap_of(block.type)].taken -= range.size;
    if (block.ranges.used() != 0 || is_emptied(&block)) return;
    // Keeps one empty block for later allocations, unless it is large.
    const bool has_spare = std::any_of(blocks.begin(), blocks.end(), [&](const MemoryBlock& other) {
      return &other != &block && other.ranges.used() == 0;
    });
    if (!has_spare && block.size <= largest_block) return;
    take_block_locked(block, empty);
  }
  free_blocks(empty);
}

MemoryBlock* VulkanMemory::next_to_empty_locked(const std::vector<const MemoryBlock*>& tried) noexcept {
  MemoryBlock* emptiest = nullptr;
  for (Pool& pool : pools_) {
    std::uint64_t spare = 0;
    for (const MemoryBlock& block : pool.blocks) spare += block.size - block.ranges.used();
    for (MemoryBlock& block : pool.blocks) {
      const std::uint64_t used = block.ranges.used();
      if (used == 0 || used > spare - (block.size - used)) continue;
      if (std::find(tried.begin(), tried.end(), &block) != tried.end()) continue;
      if (!emptiest || used < emptiest->ranges.used()) emptiest = &block;
    }
  }
  return emptiest;
}

std::uint64_t VulkanMemory::empty_blocks(const std::function<void()>& move) noexcept {
  std::vector<const MemoryBlock*> tried;
  std::uint64_t freed = 0;
  for (;;) {
    MemoryBlock* block = nullptr;
    {
      const std::lock_guard lock(mutex_);
      block = next_to_empty_locked(tried);
      if (!block) return freed;
      try {
        tried.push_back(block);
      } catch (const std::bad_alloc&) {
        return freed;
      }
      emptied_.store(block, std::memory_order_relaxed);
    }
    move();
    std::list<MemoryBlock> empty;
    {
      const std::lock_guard lock(mutex_);
      emptied_.store(nullptr, std::memory_order_relaxed);
      if (block->ranges.used() != 0) continue;
      take_block_locked(*block, empty);
    }
    freed += empty.front().size;
    free_blocks(empty);
  }
}

/// Moves a block from its pool to `to`.
void VulkanMemory::take_block_locked(MemoryBlock& block, std::list<MemoryBlock>& to) noexcept {
  std::list<MemoryBlock>& blocks = pools_[block.type].blocks;
  to.splice(to.begin(), blocks, std::find_if(blocks.begin(), blocks.end(), [&](const MemoryBlock& other) {
              return &other == &block;
            }));
}

bool VulkanMemory::free_spare_blocks(std::uint32_t heap) noexcept {
  std::list<MemoryBlock> empty;
  {
    const std::lock_guard lock(mutex_);
    for (Pool& pool : pools_)
      for (auto it = pool.blocks.begin(); it != pool.blocks.end();) {
        const auto block = it++;
        if (heap_of(block->type) == heap && block->ranges.used() == 0 && !is_emptied(&*block))
          empty.splice(empty.end(), pool.blocks, block);
      }
  }
  if (empty.empty()) return false;
  free_blocks(empty);
  return true;
}

/// Frees blocks.
void VulkanMemory::free_blocks(std::list<MemoryBlock>& blocks) noexcept {
  for (MemoryBlock& block : blocks) {
    if (block.memory != VK_NULL_HANDLE) device_.vk.FreeMemory(device_.handle(), block.memory, nullptr);
    const std::lock_guard lock(mutex_);
    --allocations_;
    heaps_[heap_of(block.type)].held -= block.size;
  }
  blocks.clear();
}

VulkanMemory::Use VulkanMemory::use_of(std::uint32_t heap) const {
  const std::lock_guard lock(mutex_);
  return heaps_[heap];
}

}  // namespace wye::vulkan
