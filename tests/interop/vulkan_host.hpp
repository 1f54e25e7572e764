#pragma once
/// A program that has Vulkan of its own: instance, device, queue, memory, semaphores, made without
/// wye.
#include <wye/base/dynamic_library.hpp>
#include <wye/interop/vulkan.hpp>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace wye::test {

/// The driver's functions, by name.
class VulkanFunctions {
 public:
  explicit VulkanFunctions(PFN_vkGetInstanceProcAddr get) : get_(get) {}
  template <class F>
  F instance(VkInstance of, const char* name) const {
    return reinterpret_cast<F>(get_(of, name));
  }

 private:
  PFN_vkGetInstanceProcAddr get_;
};
#define WYE_TEST_CALL(name) functions.instance<PFN_vk##name>(instance, "vk" #name)

/// The parameters of the application's device. A test may make them invalid.
struct HostOptions {
  bool timeline_semaphore = true;
  bool buffer_device_address = true;
  bool one_by_one = false;  ///< features in structs of their own, as programs for Vulkan 1.1 have them
  std::vector<const char*> extensions = {};
  bool layers = true;  ///< the layers of VK_INSTANCE_LAYERS
};

/// Leaves a variable of the environment out, while it is in scope.
class Unset {
 public:
  explicit Unset(const char* name) : name_(name) {
    if (const char* value = std::getenv(name)) value_ = value;
    ::unsetenv(name);
  }
  Unset(const Unset&) = delete;
  ~Unset() {
    if (value_) ::setenv(name_, value_->c_str(), 1);
  }

 private:
  const char* name_;
  std::optional<std::string> value_;
};

/// Threads: one thread at a time, but for the queue, which is used under `mutex`.
class VulkanHost {
 public:
  explicit VulkanHost(const HostOptions& options = {})
      : library(DynamicLibrary::open({"libvulkan.so.1", "libvulkan.so"}).value()),
        functions(library.function<PFN_vkGetInstanceProcAddr>("vkGetInstanceProcAddr")) {
    const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                        .pNext = nullptr,
                                        .pApplicationName = "host",
                                        .applicationVersion = 1,
                                        .pEngineName = nullptr,
                                        .engineVersion = 0,
                                        .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo made{};
    made.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    made.pApplicationInfo = &application;
    std::optional<Unset> bare;
    if (!options.layers) bare.emplace("VK_INSTANCE_LAYERS");
    REQUIRE(WYE_TEST_CALL(CreateInstance)(&made, nullptr, &instance) == VK_SUCCESS);
    std::uint32_t count = 1;
    REQUIRE(WYE_TEST_CALL(EnumeratePhysicalDevices)(instance, &count, &physical) >= VK_SUCCESS);
    REQUIRE(count == 1);
    v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    v12.timelineSemaphore = options.timeline_semaphore;
    v12.bufferDeviceAddress = options.buffer_device_address;
    timelines.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    timelines.timelineSemaphore = options.timeline_semaphore;
    timelines.pNext = &addresses;
    addresses.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
    addresses.bufferDeviceAddress = options.buffer_device_address;
    wanted.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    wanted.queueCount = 1;  // of family 0, which every driver has for computing
    wanted.pQueuePriorities = &priority;
    created.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    created.pNext = options.one_by_one ? static_cast<const void*>(&timelines) : &v12;
    created.queueCreateInfoCount = 1;
    created.pQueueCreateInfos = &wanted;
    extensions = options.extensions;
    created.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    created.ppEnabledExtensionNames = extensions.data();
    REQUIRE(WYE_TEST_CALL(CreateDevice)(physical, &created, nullptr, &device) == VK_SUCCESS);
    WYE_TEST_CALL(GetDeviceQueue)(device, 0, 0, &queue);
  }
  ~VulkanHost() {
    WYE_TEST_CALL(DeviceWaitIdle)(device);
    for (const VkSemaphore one : semaphores) WYE_TEST_CALL(DestroySemaphore)(device, one, nullptr);
    for (const VkBuffer one : buffers) WYE_TEST_CALL(DestroyBuffer)(device, one, nullptr);
    for (const VkDeviceMemory one : memories) WYE_TEST_CALL(FreeMemory)(device, one, nullptr);
    if (pool != VK_NULL_HANDLE) WYE_TEST_CALL(DestroyCommandPool)(device, pool, nullptr);
    WYE_TEST_CALL(DestroyDevice)(device, nullptr);
    WYE_TEST_CALL(DestroyInstance)(instance, nullptr);
  }
  VulkanHost(const VulkanHost&) = delete;

  interop::VulkanDevice brought() {
    return {.instance = instance,
            .physical = physical,
            .device = device,
            .queue_family = 0,
            .queue = queue,
            .lock = mutex,
            .created = &created};
  }

  VkBuffer buffer(VkDeviceSize bytes) {
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    VkBuffer made = VK_NULL_HANDLE;
    REQUIRE(WYE_TEST_CALL(CreateBuffer)(device, &info, nullptr, &made) == VK_SUCCESS);
    buffers.push_back(made);
    return made;
  }
  /// Host-visible memory, with its first byte.
  VkDeviceMemory memory(VkDeviceSize bytes, std::byte*& mapped) {
    VkPhysicalDeviceMemoryProperties properties{};
    WYE_TEST_CALL(GetPhysicalDeviceMemoryProperties)(physical, &properties);
    constexpr VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    std::uint32_t type = 0;
    while ((properties.memoryTypes[type].propertyFlags & visible) != visible) ++type;
    const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                          .pNext = nullptr,
                                          .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
                                          .deviceMask = 0};
    const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .pNext = &flags,
                                    .allocationSize = bytes,
                                    .memoryTypeIndex = type};
    VkDeviceMemory made = VK_NULL_HANDLE;
    REQUIRE(WYE_TEST_CALL(AllocateMemory)(device, &info, nullptr, &made) == VK_SUCCESS);
    memories.push_back(made);
    void* seen = nullptr;
    REQUIRE(WYE_TEST_CALL(MapMemory)(device, made, 0, VK_WHOLE_SIZE, 0, &seen) == VK_SUCCESS);
    mapped = static_cast<std::byte*>(seen);
    return made;
  }
  void bind(VkBuffer buffer, VkDeviceMemory memory) {
    REQUIRE(WYE_TEST_CALL(BindBufferMemory)(device, buffer, memory, 0) == VK_SUCCESS);
  }
  VkSemaphore semaphore() {
    const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                         .pNext = nullptr,
                                         .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                         .initialValue = 0};
    const VkSemaphoreCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type, .flags = 0};
    VkSemaphore made = VK_NULL_HANDLE;
    REQUIRE(WYE_TEST_CALL(CreateSemaphore)(device, &info, nullptr, &made) == VK_SUCCESS);
    semaphores.push_back(made);
    return made;
  }
  std::uint64_t value(VkSemaphore of) {
    std::uint64_t now = 0;
    CHECK(WYE_TEST_CALL(GetSemaphoreCounterValue)(device, of, &now) == VK_SUCCESS);
    return now;
  }
  void signal(VkSemaphore of, std::uint64_t to) {
    const VkSemaphoreSignalInfo info{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .pNext = nullptr, .semaphore = of, .value = to};
    CHECK(WYE_TEST_CALL(SignalSemaphore)(device, &info) == VK_SUCCESS);
  }
  /// Fills a buffer on the application's queue after `wait`, then signals `done`.
  void fill(VkBuffer target, std::uint32_t pattern, interop::VulkanSemaphore wait,
            interop::VulkanSemaphore done) {
    if (pool == VK_NULL_HANDLE) {
      VkCommandPoolCreateInfo info{};
      info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
      REQUIRE(WYE_TEST_CALL(CreateCommandPool)(device, &info, nullptr, &pool) == VK_SUCCESS);
    }
    VkCommandBufferAllocateInfo take{};
    take.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    take.commandPool = pool;
    take.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    REQUIRE(WYE_TEST_CALL(AllocateCommandBuffers)(device, &take, &commands) == VK_SUCCESS);
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    WYE_TEST_CALL(BeginCommandBuffer)(commands, &begin);
    WYE_TEST_CALL(CmdFillBuffer)(commands, target, 0, VK_WHOLE_SIZE, pattern);
    WYE_TEST_CALL(EndCommandBuffer)(commands);
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo values{};
    values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    values.waitSemaphoreValueCount = values.signalSemaphoreValueCount = 1;
    values.pWaitSemaphoreValues = &wait.value;
    values.pSignalSemaphoreValues = &done.value;
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &values;
    info.waitSemaphoreCount = wait.semaphore == VK_NULL_HANDLE ? 0 : 1;
    info.pWaitSemaphores = &wait.semaphore;
    info.pWaitDstStageMask = &stage;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &done.semaphore;
    const std::lock_guard lock(mutex);
    CHECK(WYE_TEST_CALL(QueueSubmit)(queue, 1, &info, VK_NULL_HANDLE) == VK_SUCCESS);
  }

  DynamicLibrary library;
  VulkanFunctions functions;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::mutex mutex;
  VkDeviceCreateInfo created{};

 private:
  const float priority = 1;
  std::vector<const char*> extensions;
  VkDeviceQueueCreateInfo wanted{};
  VkPhysicalDeviceVulkan12Features v12{};
  VkPhysicalDeviceTimelineSemaphoreFeatures timelines{};
  VkPhysicalDeviceBufferDeviceAddressFeatures addresses{};
  VkCommandPool pool = VK_NULL_HANDLE;
  std::vector<VkBuffer> buffers;
  std::vector<VkDeviceMemory> memories;
  std::vector<VkSemaphore> semaphores;
};

}  // namespace wye::test
