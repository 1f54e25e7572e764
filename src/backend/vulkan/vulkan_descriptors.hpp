#pragma once
/// Descriptor sets of one submission.
#include <cstdint>
#include <vector>

#include "backend/vulkan/vulkan_executable.hpp"

namespace wye::inline v0::vulkan {

/// Allocates descriptor sets until it is reset. Creates larger pools on demand and reuses them.
/// Threads: one thread at a time.
class DescriptorSets {
 public:
  explicit DescriptorSets(VulkanDevice& device) : device_(device) {}
  ~DescriptorSets();
  DescriptorSets(const DescriptorSets&) = delete;
  DescriptorSets& operator=(const DescriptorSets&) = delete;

  /// Returns an unwritten set with the executable's layout.
  /// Errors: out_of_memory, device_lost.
  Result<VkDescriptorSet> allocate(const VulkanExecutable& executable);
  /// Frees all sets. The device must have finished with them.
  void reset() noexcept;

 private:
  struct Pool {
    VkDescriptorPool handle = VK_NULL_HANDLE;
    std::uint32_t sets = 0;
    std::uint32_t descriptors = 0;
    std::uint32_t sets_left = 0;
    std::uint32_t descriptors_left = 0;
  };
  Result<void> grow(std::uint32_t descriptors);
  VulkanDevice& device_;
  std::vector<Pool> pools_;  // sets come from the last one
};

}  // namespace wye::vulkan
