#include "backend/vulkan/vulkan_memory_types.hpp"

#include <algorithm>
#include <functional>

namespace wye::inline v0::vulkan {
namespace {

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr VkMemoryPropertyFlags ordinary = local | visible | coherent | cached;

/// Returns the types that satisfy `fits`, by `score`, then by the size of the heap, then in the
/// driver's order.
std::vector<std::uint32_t> choose(const VkPhysicalDeviceMemoryProperties& memory,
                                  const std::function<bool(VkMemoryPropertyFlags)>& fits,
                                  const std::function<int(VkMemoryPropertyFlags)>& score) {
  std::vector<std::uint32_t> types;
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if ((flags & ~ordinary) == 0 && fits(flags)) types.push_back(i);
  }
  std::stable_sort(types.begin(), types.end(), [&](std::uint32_t a, std::uint32_t b) {
    const VkMemoryType &x = memory.memoryTypes[a], &y = memory.memoryTypes[b];
    const int sx = score(x.propertyFlags), sy = score(y.propertyFlags);
    return sx != sy ? sx > sy : memory.memoryHeaps[x.heapIndex].size > memory.memoryHeaps[y.heapIndex].size;
  });
  return types;
}

bool has(VkMemoryPropertyFlags flags, VkMemoryPropertyFlags wanted) { return (flags & wanted) == wanted; }

}  // namespace

MemoryTypes choose_memory_types(const VkPhysicalDeviceMemoryProperties& memory, bool unified) {
  MemoryTypes types;
  types.device = choose(
      memory, [](VkMemoryPropertyFlags f) { return has(f, local); },
      [unified](VkMemoryPropertyFlags f) {
        if (!unified) return has(f, visible) ? 0 : 1;
        return has(f, visible | cached | coherent) ? 2 : has(f, visible | cached) ? 1 : 0;
      });
  types.transfer = choose(
      memory, [](VkMemoryPropertyFlags f) { return has(f, visible | coherent); },
      [unified](VkMemoryPropertyFlags f) {
        return (has(f, cached) ? 2 : 0) + (has(f, local) == unified ? 1 : 0);
      });
  return types;
}

bool is_read_in_place(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t type) {
  return has(memory.memoryTypes[type].propertyFlags, visible | cached);
}

}  // namespace wye::vulkan
