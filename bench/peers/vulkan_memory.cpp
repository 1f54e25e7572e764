#include "peers/vulkan_memory.hpp"

#define VK_NO_PROTOTYPES
#include <wye/interop/vulkan.hpp>
#include <wye/wye.hpp>

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

}  // namespace

#ifdef WYE_BENCH_VMA

struct Vma::State {
  VmaAllocator allocator = nullptr;
  struct Made {
    VkBuffer buffer = VK_NULL_HANDLE;
    VmaAllocation allocation = nullptr;
  };
  std::vector<Made> made;
  ~State() {
    if (allocator) vmaDestroyAllocator(allocator);
  }
};

std::unique_ptr<Vma> Vma::open(const wye::Device& device, std::size_t buffers) {
  const auto native = wye::interop::vulkan_device(device);
  if (!native) return nullptr;
  auto state = std::make_unique<State>();
  state->made.resize(buffers);
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
  if (vmaCreateAllocator(&info, &state->allocator) != VK_SUCCESS) return nullptr;
  return std::unique_ptr<Vma>(new Vma(std::move(state)));
}

bool Vma::create(std::uint32_t number, std::uint64_t bytes) {
  const VkBufferCreateInfo info = buffer_info(bytes);
  VmaAllocationCreateInfo how{};
  how.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
  how.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
  State::Made& made = state_->made[number];
  return vmaCreateBuffer(state_->allocator, &info, &how, &made.buffer, &made.allocation, nullptr) ==
         VK_SUCCESS;
}

void Vma::destroy(std::uint32_t number) {
  State::Made& made = state_->made[number];
  vmaDestroyBuffer(state_->allocator, made.buffer, made.allocation);
  made = {};
}

std::uint64_t Vma::held() const {
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS]{};
  vmaGetHeapBudgets(state_->allocator, budgets);
  std::uint64_t held = 0;
  for (const VmaBudget& budget : budgets) held += budget.statistics.blockBytes;
  return held;
}

#else

struct Vma::State {};
std::unique_ptr<Vma> Vma::open(const wye::Device&, std::size_t) { return nullptr; }
bool Vma::create(std::uint32_t, std::uint64_t) { return false; }
void Vma::destroy(std::uint32_t) {}
std::uint64_t Vma::held() const { return 0; }

#endif

Vma::Vma(std::unique_ptr<State> state) : state_(std::move(state)) {}
Vma::~Vma() = default;

struct OwnAllocations::State {
  wye::interop::VulkanDevice on;
#define WYE_BENCH_CALLS(X) \
  X(vkCreateBuffer)        \
  X(vkDestroyBuffer)       \
  X(vkGetBufferMemoryRequirements) X(vkAllocateMemory) X(vkFreeMemory) X(vkBindBufferMemory) X(vkMapMemory)
#define X(name) PFN_##name name = nullptr;
  WYE_BENCH_CALLS(X)
#undef X
  struct Made {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    std::uint64_t bytes = 0;
  };
  std::vector<Made> made;
  std::uint64_t held = 0;
};

std::unique_ptr<OwnAllocations> OwnAllocations::open(const wye::Device& device, std::size_t buffers) {
  const auto native = wye::interop::vulkan_device(device);
  if (!native) return nullptr;
  auto state = std::make_unique<State>();
  state->on = *native;
  state->made.resize(buffers);
#define X(name) state->name = reinterpret_cast<PFN_##name>(native->entry_points(native->instance, #name));
  WYE_BENCH_CALLS(X)
#undef X
  return std::unique_ptr<OwnAllocations>(new OwnAllocations(std::move(state)));
}

bool OwnAllocations::create(std::uint32_t number, std::uint64_t bytes) {
  State& s = *state_;
  State::Made& made = s.made[number];
  const VkBufferCreateInfo info = buffer_info(bytes);
  if (s.vkCreateBuffer(s.on.device, &info, nullptr, &made.buffer) != VK_SUCCESS) return false;
  VkMemoryRequirements needs{};
  s.vkGetBufferMemoryRequirements(s.on.device, made.buffer, &needs);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &flags;
  allocate.allocationSize = needs.size;
  while (!(needs.memoryTypeBits & (1u << allocate.memoryTypeIndex))) ++allocate.memoryTypeIndex;
  if (s.vkAllocateMemory(s.on.device, &allocate, nullptr, &made.memory) != VK_SUCCESS) return false;
  s.vkBindBufferMemory(s.on.device, made.buffer, made.memory, 0);
  void* mapped = nullptr;
  s.held += made.bytes = needs.size;
  return s.vkMapMemory(s.on.device, made.memory, 0, VK_WHOLE_SIZE, 0, &mapped) == VK_SUCCESS;
}

void OwnAllocations::destroy(std::uint32_t number) {
  State& s = *state_;
  State::Made& made = s.made[number];
  s.vkDestroyBuffer(s.on.device, made.buffer, nullptr);
  s.vkFreeMemory(s.on.device, made.memory, nullptr);
  s.held -= made.bytes;
  made = {};
}

std::uint64_t OwnAllocations::held() const { return state_->held; }

OwnAllocations::OwnAllocations(std::unique_ptr<State> state) : state_(std::move(state)) {}
OwnAllocations::~OwnAllocations() = default;

}  // namespace wye_bench
