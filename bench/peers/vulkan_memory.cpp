#include "peers/vulkan_memory.hpp"

#define VK_NO_PROTOTYPES
#include <wye/interop/vulkan.hpp>
#include <wye/wye.hpp>

#include <cstring>
#include <vector>

#if __has_include(<vk_mem_alloc.h>)
#define WYE_BENCH_VMA 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>
#pragma GCC diagnostic pop
#endif

namespace wye_bench {
namespace {

constexpr VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                     VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                     VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

VkBufferCreateInfo buffer_info(std::uint64_t bytes) {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = usage;
  return info;
}

#ifdef WYE_BENCH_VMA

class Vma final : public VulkanBuffers {
 public:
  Vma(VmaAllocator allocator, std::size_t buffers) : allocator_(allocator), made_(buffers) {}
  Vma(const Vma&) = delete;
  ~Vma() override { vmaDestroyAllocator(allocator_); }

  bool create(std::uint32_t number, std::uint64_t bytes) override {
    const VkBufferCreateInfo info = buffer_info(bytes);
    VmaAllocationCreateInfo how{};
    how.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
    how.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
    Made& made = made_[number];
    VmaAllocationInfo placed{};
    if (vmaCreateBuffer(allocator_, &info, &how, &made.buffer, &made.allocation, &placed) != VK_SUCCESS)
      return false;
    std::memset(placed.pMappedData, 0, bytes);
    return true;
  }
  void destroy(std::uint32_t number) override {
    Made& made = made_[number];
    vmaDestroyBuffer(allocator_, made.buffer, made.allocation);
    made = {};
  }
  std::uint64_t held() const override {
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS]{};
    vmaGetHeapBudgets(allocator_, budgets);
    std::uint64_t held = 0;
    for (const VmaBudget& budget : budgets) held += budget.statistics.blockBytes;
    return held;
  }

 private:
  struct Made {
    VkBuffer buffer = VK_NULL_HANDLE;
    VmaAllocation allocation = nullptr;
  };
  VmaAllocator allocator_;
  std::vector<Made> made_;
};

#endif

#define WYE_BENCH_CALLS(X) \
  X(vkCreateBuffer)        \
  X(vkDestroyBuffer)       \
  X(vkGetBufferMemoryRequirements) X(vkAllocateMemory) X(vkFreeMemory) X(vkBindBufferMemory) X(vkMapMemory)

class OneAllocationEach final : public VulkanBuffers {
 public:
  OneAllocationEach(const wye::interop::VulkanDevice& on, std::size_t buffers)
      : device_(on.device), made_(buffers) {
#define X(name) name = reinterpret_cast<PFN_##name>(on.entry_points(on.instance, #name));
    WYE_BENCH_CALLS(X)
#undef X
  }

  bool create(std::uint32_t number, std::uint64_t bytes) override {
    Made& made = made_[number];
    const VkBufferCreateInfo info = buffer_info(bytes);
    if (vkCreateBuffer(device_, &info, nullptr, &made.buffer) != VK_SUCCESS) return false;
    VkMemoryRequirements needs{};
    vkGetBufferMemoryRequirements(device_, made.buffer, &needs);
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.pNext = &flags;
    allocate.allocationSize = needs.size;
    while (!(needs.memoryTypeBits & (1u << allocate.memoryTypeIndex))) ++allocate.memoryTypeIndex;
    if (vkAllocateMemory(device_, &allocate, nullptr, &made.memory) != VK_SUCCESS) return false;
    vkBindBufferMemory(device_, made.buffer, made.memory, 0);
    void* mapped = nullptr;
    held_ += made.bytes = needs.size;
    if (vkMapMemory(device_, made.memory, 0, VK_WHOLE_SIZE, 0, &mapped) != VK_SUCCESS) return false;
    std::memset(mapped, 0, bytes);
    return true;
  }
  void destroy(std::uint32_t number) override {
    Made& made = made_[number];
    vkDestroyBuffer(device_, made.buffer, nullptr);
    vkFreeMemory(device_, made.memory, nullptr);
    held_ -= made.bytes;
    made = {};
  }
  std::uint64_t held() const override { return held_; }

 private:
  struct Made {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    std::uint64_t bytes = 0;
  };
#define X(name) PFN_##name name = nullptr;
  WYE_BENCH_CALLS(X)
#undef X
  VkDevice device_;
  std::vector<Made> made_;
  std::uint64_t held_ = 0;
};

}  // namespace

#ifdef WYE_BENCH_VMA

std::unique_ptr<VulkanBuffers> open_vma(const wye::Device& device, std::size_t buffers) {
  const auto native = wye::interop::vulkan_device(device);
  if (!native) return nullptr;
  VmaVulkanFunctions functions{};
  functions.vkGetInstanceProcAddr = native->entry_points;
  functions.vkGetDeviceProcAddr = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
      native->entry_points(native->instance, "vkGetDeviceProcAddr"));
  VmaAllocatorCreateInfo info{};
  info.flags = VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  info.instance = native->instance;
  info.physicalDevice = native->physical;
  info.device = native->device;
  info.vulkanApiVersion = VK_API_VERSION_1_2;
  info.pVulkanFunctions = &functions;
  VmaAllocator allocator = nullptr;
  if (vmaCreateAllocator(&info, &allocator) != VK_SUCCESS) return nullptr;
  return std::make_unique<Vma>(allocator, buffers);
}

#else

std::unique_ptr<VulkanBuffers> open_vma(const wye::Device&, std::size_t) { return nullptr; }

#endif

std::unique_ptr<VulkanBuffers> open_one_allocation_each(const wye::Device& device, std::size_t buffers) {
  const auto native = wye::interop::vulkan_device(device);
  if (!native) return nullptr;
  return std::make_unique<OneAllocationEach>(*native, buffers);
}

}  // namespace wye_bench
