#pragma once
/// Which of a driver's memory types wye uses for what.
#include <cstdint>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "device/buffer.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Memory types by use, preferred first.
struct MemoryTypes {
  std::vector<std::uint32_t> device;
  std::vector<std::uint32_t> transfer;
  const std::vector<std::uint32_t>& of(device::MemoryUse use) const {
    return use == device::MemoryUse::device ? device : transfer;
  }
};

/// Chooses. Where host and device share their memory (`unified`), device memory is such that the host reads
/// and writes in place; on a card it is the card's own, and staging goes between: reading over the bus
/// through a mapping is slow. Transfer memory is always host coherent, and cached where that exists, for it
/// is read too.
MemoryTypes choose_memory_types(const VkPhysicalDeviceMemoryProperties& memory, bool unified);

/// Whether the host reads a memory type at full speed: what it sees uncached is slower than a copy more.
bool is_read_in_place(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t type);

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
