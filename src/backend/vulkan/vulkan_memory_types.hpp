#pragma once
/// Chooses the driver's memory types for each use.
#include <cstdint>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "device/buffer.hpp"

namespace wye::inline v0::vulkan {

/// Memory types by use, preferred first.
struct MemoryTypes {
  std::vector<std::uint32_t> device;
  std::vector<std::uint32_t> transfer;
  const std::vector<std::uint32_t>& of(device::MemoryUse use) const {
    return use == device::MemoryUse::device ? device : transfer;
  }
};

/// Chooses memory types. If host and device share their memory (`unified`), the host reads and
/// writes device memory in place. On a card, device memory is the card's own and copies are staged,
/// because reading a mapping over the bus is slow. Transfer memory is always host coherent, and
/// cached if possible, because the host reads it, too.
MemoryTypes choose_memory_types(const VkPhysicalDeviceMemoryProperties& memory, bool unified);

/// Returns whether the host reads a memory type at full speed. Uncached reads are slower than an
/// additional copy.
bool is_read_in_place(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t type);

}  // namespace wye::vulkan
