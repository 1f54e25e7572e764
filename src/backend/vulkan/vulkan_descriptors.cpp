#include "backend/vulkan/vulkan_descriptors.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

constexpr std::uint32_t first_sets = 16;
constexpr std::uint32_t most_sets = 1024;
constexpr std::uint32_t descriptors_per_set = 4;

}  // namespace

DescriptorSets::~DescriptorSets() {
  for (const Pool& pool : pools_) device_.vk.DestroyDescriptorPool(device_.handle(), pool.handle, nullptr);
}

Result<VkDescriptorSet> DescriptorSets::allocate(const VulkanExecutable& executable) {
  const auto count = static_cast<std::uint32_t>(executable.bindings().size());
  if (pools_.empty() || pools_.back().sets_left == 0 || pools_.back().descriptors_left < count)
    if (auto grown = grow(count); !grown) return std::move(grown).error();
  Pool& pool = pools_.back();
  const VkDescriptorSetLayout layout = executable.set_layout();
  const VkDescriptorSetAllocateInfo info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                         .pNext = nullptr,
                                         .descriptorPool = pool.handle,
                                         .descriptorSetCount = 1,
                                         .pSetLayouts = &layout};
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (const VkResult r = device_.vk.AllocateDescriptorSets(device_.handle(), &info, &set); r != VK_SUCCESS)
    return device_.failed(r, "vkAllocateDescriptorSets",
                          base::text("Device '{}' cannot allocate a descriptor set.", device_.info().id));
  --pool.sets_left;
  pool.descriptors_left -= count;
  return set;
}

Result<void> DescriptorSets::grow(std::uint32_t descriptors) {
  Pool pool;
  pool.sets = pools_.empty() ? first_sets : std::min(most_sets, pools_.back().sets * 2);
  pool.descriptors = std::max(pool.sets * descriptors_per_set, descriptors);
  pool.sets_left = pool.sets;
  pool.descriptors_left = pool.descriptors;
  const VkDescriptorPoolSize size{.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                  .descriptorCount = pool.descriptors};
  const VkDescriptorPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                        .pNext = nullptr,
                                        .flags = 0,
                                        .maxSets = pool.sets,
                                        .poolSizeCount = 1,
                                        .pPoolSizes = &size};
  pools_.reserve(pools_.size() + 1);
  if (const VkResult r = device_.vk.CreateDescriptorPool(device_.handle(), &info, nullptr, &pool.handle);
      r != VK_SUCCESS)
    return device_.failed(r, "vkCreateDescriptorPool",
                          base::text("Device '{}' cannot create a descriptor pool.", device_.info().id));
  pools_.push_back(pool);
  return {};
}

void DescriptorSets::reset() noexcept {
  if (pools_.empty()) return;
  const auto last = pools_.end() - 1;  // the largest pool suffices for as many sets
  for (auto pool = pools_.begin(); pool != last; ++pool)
    device_.vk.DestroyDescriptorPool(device_.handle(), pool->handle, nullptr);
  pools_.erase(pools_.begin(), last);
  Pool& pool = pools_.back();
  if (pool.sets_left == pool.sets) return;
  device_.vk.ResetDescriptorPool(device_.handle(), pool.handle, 0);  // cannot fail
  pool.sets_left = pool.sets;
  pool.descriptors_left = pool.descriptors;
}

}  // namespace wye::vulkan
