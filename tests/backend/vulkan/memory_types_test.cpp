// Which memory types are chosen, from tables of real drivers.
#include "backend/vulkan/vulkan_memory_types.hpp"

#include <initializer_list>

#include "backend/vulkan/vulkan_adapter.hpp"
#include "support/catch.hpp"

namespace wye::test {
namespace {

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr std::uint64_t GiB = 1ull << 30;

using List = std::vector<std::uint32_t>;

VkPhysicalDeviceMemoryProperties table(std::initializer_list<std::uint64_t> heaps,
                                       std::initializer_list<VkMemoryType> types) {
  VkPhysicalDeviceMemoryProperties memory{};
  for (const std::uint64_t size : heaps) memory.memoryHeaps[memory.memoryHeapCount++].size = size;
  for (const VkMemoryType& type : types) memory.memoryTypes[memory.memoryTypeCount++] = type;
  return memory;
}

TEST_CASE("lavapipe's one memory type serves for everything", "[vulkan]") {
  const auto types =
      vulkan::choose_memory_types(table({2 * GiB}, {{local | visible | coherent | cached, 0}}), true);
  CHECK(types.device == List{0});
  CHECK(types.transfer == List{0});
}

TEST_CASE("a card's own memory is used unmapped, and staging is cached memory of the host", "[vulkan]") {
  // As NVIDIA's driver with a resizable bar lists them.
  const auto types =
      vulkan::choose_memory_types(table({80 * GiB, 64 * GiB, GiB / 4}, {{0, 1},
                                                                        {local, 0},
                                                                        {visible | coherent, 1},
                                                                        {visible | coherent | cached, 1},
                                                                        {local | visible | coherent, 2}}),
                                  false);
  CHECK(types.device == List{1, 4});
  CHECK(types.transfer.front() == 3);
}

TEST_CASE("an integrated device's memory is mapped, cached and coherent if that exists", "[vulkan]") {
  // As on phones: also types that are not coherent, and protected and lazily allocated ones.
  const auto types =
      vulkan::choose_memory_types(table({8 * GiB}, {{local, 0},
                                                    {local | visible | cached, 0},
                                                    {local | visible | coherent, 0},
                                                    {local | visible | coherent | cached, 0},
                                                    {local | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0},
                                                    {local | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0}}),
                                  true);
  CHECK(types.device == List{3, 1, 0, 2});
  CHECK(types.transfer.front() == 3);
}

TEST_CASE("memory that the host reads uncached is not read in place", "[vulkan]") {
  // Like an APU with a write-combined heap.
  const auto memory = table({4 * GiB, 8 * GiB}, {{local | visible | coherent, 0},
                                                 {local | visible | coherent | cached, 0},
                                                 {visible | coherent | cached, 1}});
  CHECK_FALSE(vulkan::is_read_in_place(memory, 0));
  CHECK(vulkan::is_read_in_place(memory, 1));
  CHECK(vulkan::choose_memory_types(memory, true).device.front() == 1);
}

TEST_CASE("of equal memory types the one in the larger heap is preferred", "[vulkan]") {
  const auto types = vulkan::choose_memory_types(
      table({GiB, 16 * GiB, 32 * GiB}, {{local, 0}, {local, 1}, {visible | coherent, 2}}), false);
  CHECK(types.device == List{1, 0});
  CHECK(types.transfer == List{2});
}

TEST_CASE("a queue family for compute only is preferred to a family that also draws", "[vulkan]") {
  constexpr VkQueueFlags draws = VK_QUEUE_GRAPHICS_BIT, computes = VK_QUEUE_COMPUTE_BIT,
                         moves = VK_QUEUE_TRANSFER_BIT;
  const auto family = [](VkQueueFlags flags, std::uint32_t queues) {
    VkQueueFamilyProperties f{};
    f.queueFlags = flags;
    f.queueCount = queues;
    return f;
  };
  const VkQueueFamilyProperties card[] = {family(draws | computes | moves, 16), family(moves, 2),
                                          family(computes | moves, 8)};
  CHECK(vulkan::choose_queue_family(card, 3) == 2);
  CHECK(vulkan::choose_queue_family(card, 2) == 0);
  const VkQueueFamilyProperties empty[] = {family(computes, 0), family(draws | computes, 1)};
  CHECK(vulkan::choose_queue_family(empty, 2) == 1);
  const VkQueueFamilyProperties none[] = {family(draws, 1), family(moves, 1)};
  CHECK(vulkan::choose_queue_family(none, 2) == 2);
}

}  // namespace
}  // namespace wye::test
