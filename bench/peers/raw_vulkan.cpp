#include "peers/raw_vulkan.hpp"

#include <dlfcn.h>
#include <shaderc/shaderc.h>

#include <mutex>
#include <utility>
#include <vector>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace wye_bench {
namespace {

std::vector<std::uint32_t> compile(const std::string& glsl) {
  shaderc_compiler_t compiler = shaderc_compiler_initialize();
  shaderc_compile_options_t options = shaderc_compile_options_initialize();
  shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
  shaderc_compilation_result_t result = shaderc_compile_into_spv(
      compiler, glsl.data(), glsl.size(), shaderc_compute_shader, "peer", "main", options);
  std::vector<std::uint32_t> words;
  if (shaderc_result_get_compilation_status(result) == shaderc_compilation_status_success) {
    const auto* bytes = reinterpret_cast<const std::uint32_t*>(shaderc_result_get_bytes(result));
    words.assign(bytes, bytes + shaderc_result_get_length(result) / 4);
  }
  shaderc_result_release(result);
  shaderc_compile_options_release(options);
  shaderc_compiler_release(compiler);
  return words;
}

}  // namespace

// clang-format moves this list each time it sees it.
// clang-format off
#define WYE_BENCH_INSTANCE_CALLS(X) \
  X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkGetPhysicalDeviceMemoryProperties) X(vkCreateDevice) X(vkDestroyDevice) X(vkGetDeviceQueue) \
  X(vkCreateBuffer) X(vkDestroyBuffer) X(vkGetBufferMemoryRequirements) X(vkAllocateMemory) \
  X(vkFreeMemory) X(vkBindBufferMemory) X(vkMapMemory) X(vkCreateShaderModule) \
  X(vkDestroyShaderModule) X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) \
  X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) X(vkCreateComputePipelines) \
  X(vkDestroyPipeline) X(vkCreateDescriptorPool) X(vkDestroyDescriptorPool) \
  X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) X(vkCreateCommandPool) \
  X(vkDestroyCommandPool) X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) \
  X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) X(vkCmdDispatch) \
  X(vkCmdPipelineBarrier) X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkQueueSubmit) \
  X(vkWaitSemaphores) X(vkDeviceWaitIdle)
// clang-format on

struct RawVulkan::State {
  std::shared_ptr<State> owner;  // of library, instance, device and queue, where they are another's
  std::mutex queue_mutex;        // the owner's counts
  void* library = nullptr;
#define X(name) PFN_##name name = nullptr;
  WYE_BENCH_INSTANCE_CALLS(X)
#undef X
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  void* mapped = nullptr;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkShaderModule module = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  VkDescriptorSet set = VK_NULL_HANDLE;
  VkCommandPool commands = VK_NULL_HANDLE;
  VkCommandBuffer command = VK_NULL_HANDLE;
  struct {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    std::uint64_t value = 0;
  } timeline;

  bool open_device();
  void share_device(std::shared_ptr<State> of);
  bool open(const std::string& glsl, std::uint64_t bytes);
  bool make_pipeline();
  ~State();
};

bool RawVulkan::State::open_device() {
  library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo instance_info{};
  instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  instance_info.pApplicationInfo = &application;
  if (create(&instance_info, nullptr, &instance) != VK_SUCCESS) return false;
#define X(name) name = reinterpret_cast<PFN_##name>(get(instance, #name));
  WYE_BENCH_INSTANCE_CALLS(X)
#undef X
  std::uint32_t count = 1;
  if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) return false;

  std::uint32_t families = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, nullptr);
  std::vector<VkQueueFamilyProperties> properties(families);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, properties.data());
  while (family < families && !(properties[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
  if (family == families) return false;

  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features.timelineSemaphore = VK_TRUE;
  VkDeviceCreateInfo device_info{};
  device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  device_info.pNext = &features;
  device_info.queueCreateInfoCount = 1;
  device_info.pQueueCreateInfos = &queue_info;
  if (vkCreateDevice(physical, &device_info, nullptr, &device) != VK_SUCCESS) return false;
  vkGetDeviceQueue(device, family, 0, &queue);
  return true;
}

void RawVulkan::State::share_device(std::shared_ptr<State> of) {
#define X(name) name = of->name;
  WYE_BENCH_INSTANCE_CALLS(X)
#undef X
  instance = of->instance;
  physical = of->physical;
  family = of->family;
  device = of->device;
  queue = of->queue;
  owner = std::move(of);
}

bool RawVulkan::State::open(const std::string& glsl, std::uint64_t bytes) {
  VkBufferCreateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.size = bytes;
  buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  if (vkCreateBuffer(device, &buffer_info, nullptr, &buffer) != VK_SUCCESS) return false;
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkPhysicalDeviceMemoryProperties memories;
  vkGetPhysicalDeviceMemoryProperties(physical, &memories);
  const VkMemoryPropertyFlags wanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  std::uint32_t type = 0;
  while (type < memories.memoryTypeCount && (!(needs.memoryTypeBits & (1u << type)) ||
                                             (memories.memoryTypes[type].propertyFlags & wanted) != wanted))
    ++type;
  if (type == memories.memoryTypeCount) return false;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  if (vkAllocateMemory(device, &allocate, nullptr, &memory) != VK_SUCCESS) return false;
  vkBindBufferMemory(device, buffer, memory, 0);
  if (vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped) != VK_SUCCESS) return false;

  VkDescriptorSetLayoutBinding binding{};
  binding.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  binding.descriptorCount = 1;
  binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  VkDescriptorSetLayoutCreateInfo set_info{};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = 1;
  set_info.pBindings = &binding;
  vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout);
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(float)};
  VkPipelineLayoutCreateInfo layout_info{};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &set_layout;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &range;
  vkCreatePipelineLayout(device, &layout_info, nullptr, &layout);
  const std::vector<std::uint32_t> code = compile(glsl);
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = code.size() * 4;
  module_info.pCode = code.data();
  if (code.empty() || vkCreateShaderModule(device, &module_info, nullptr, &module) != VK_SUCCESS)
    return false;
  if (!make_pipeline()) return false;

  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
  VkDescriptorPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool_info.maxSets = 1;
  pool_info.poolSizeCount = 1;
  pool_info.pPoolSizes = &size;
  vkCreateDescriptorPool(device, &pool_info, nullptr, &pool);
  VkDescriptorSetAllocateInfo set_allocate{};
  set_allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  set_allocate.descriptorPool = pool;
  set_allocate.descriptorSetCount = 1;
  set_allocate.pSetLayouts = &set_layout;
  if (vkAllocateDescriptorSets(device, &set_allocate, &set) != VK_SUCCESS) return false;
  const VkDescriptorBufferInfo whole{buffer, 0, VK_WHOLE_SIZE};
  VkWriteDescriptorSet write{};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.descriptorCount = 1;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = &whole;
  vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);

  VkCommandPoolCreateInfo commands_info{};
  commands_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  commands_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  commands_info.queueFamilyIndex = family;
  vkCreateCommandPool(device, &commands_info, nullptr, &commands);
  VkCommandBufferAllocateInfo command_info{};
  command_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  command_info.commandPool = commands;
  command_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  command_info.commandBufferCount = 1;
  if (vkAllocateCommandBuffers(device, &command_info, &command) != VK_SUCCESS) return false;
  VkSemaphoreTypeCreateInfo type_info{};
  type_info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type_info.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore_info{};
  semaphore_info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore_info.pNext = &type_info;
  return vkCreateSemaphore(device, &semaphore_info, nullptr, &timeline.semaphore) == VK_SUCCESS;
}

bool RawVulkan::State::make_pipeline() {
  if (pipeline) vkDestroyPipeline(device, pipeline, nullptr);
  pipeline = VK_NULL_HANDLE;
  VkComputePipelineCreateInfo pipeline_info{};
  pipeline_info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  pipeline_info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  pipeline_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline_info.stage.module = module;
  pipeline_info.stage.pName = "main";
  pipeline_info.layout = layout;
  return vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, nullptr, &pipeline) ==
         VK_SUCCESS;
}

RawVulkan::State::~State() {
  if (device) {
    if (!owner) vkDeviceWaitIdle(device);
    vkDestroySemaphore(device, timeline.semaphore, nullptr);
    vkDestroyCommandPool(device, commands, nullptr);
    vkDestroyDescriptorPool(device, pool, nullptr);
    vkDestroyPipeline(device, pipeline, nullptr);
    vkDestroyShaderModule(device, module, nullptr);
    vkDestroyPipelineLayout(device, layout, nullptr);
    vkDestroyDescriptorSetLayout(device, set_layout, nullptr);
    vkDestroyBuffer(device, buffer, nullptr);
    vkFreeMemory(device, memory, nullptr);
  }
  if (owner) return;
  if (device) vkDestroyDevice(device, nullptr);
  if (instance) vkDestroyInstance(instance, nullptr);
  if (library) dlclose(library);
}

RawVulkan::RawVulkan(std::shared_ptr<State> state) : state_(std::move(state)) {}
RawVulkan::~RawVulkan() = default;

std::unique_ptr<RawVulkan> RawVulkan::open(const std::string& glsl, std::uint64_t buffer_bytes) {
  auto state = std::make_shared<State>();
  if (!state->open_device() || !state->open(glsl, buffer_bytes)) return nullptr;
  return std::unique_ptr<RawVulkan>(new RawVulkan(std::move(state)));
}

std::unique_ptr<RawVulkan> RawVulkan::beside(const std::string& glsl, std::uint64_t buffer_bytes) const {
  auto state = std::make_shared<State>();
  state->share_device(state_);
  if (!state->open(glsl, buffer_bytes)) return nullptr;
  return std::unique_ptr<RawVulkan>(new RawVulkan(std::move(state)));
}

bool RawVulkan::make_pipeline_again() { return state_->make_pipeline(); }

void RawVulkan::record(std::uint32_t dispatches, float push_constant) {
  State& s = *state_;
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  s.vkBeginCommandBuffer(s.command, &begin);
  s.vkCmdBindPipeline(s.command, VK_PIPELINE_BIND_POINT_COMPUTE, s.pipeline);
  s.vkCmdBindDescriptorSets(s.command, VK_PIPELINE_BIND_POINT_COMPUTE, s.layout, 0, 1, &s.set, 0, nullptr);
  s.vkCmdPushConstants(s.command, s.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(float), &push_constant);
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  for (std::uint32_t i = 0; i < dispatches; ++i) {
    s.vkCmdPipelineBarrier(s.command, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
    s.vkCmdDispatch(s.command, 1, 1, 1);
  }
  s.vkEndCommandBuffer(s.command);
}

bool RawVulkan::submit_and_wait() {
  State& s = *state_;
  const std::uint64_t value = ++s.timeline.value;
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.pNext = &values;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &s.command;
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &s.timeline.semaphore;
  {
    const std::lock_guard lock((s.owner ? *s.owner : s).queue_mutex);
    if (s.vkQueueSubmit(s.queue, 1, &submit, VK_NULL_HANDLE) != VK_SUCCESS) return false;
  }
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &s.timeline.semaphore;
  wait.pValues = &value;
  return s.vkWaitSemaphores(s.device, &wait, ~0ull) == VK_SUCCESS;
}

float* RawVulkan::data() { return static_cast<float*>(state_->mapped); }

}  // namespace wye_bench
