#include "backend/vulkan/vulkan_executable.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/vulkan/spirv_check.hpp"
#include "backend/vulkan/vulkan_error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "spirv/loops.hpp"
#include "spirv/rewrite.hpp"

namespace wye::inline v0::vulkan {
namespace {

using Kind = device::Passing::Kind;

}  // namespace

Result<std::shared_ptr<VulkanExecutable>> VulkanExecutable::create(std::shared_ptr<VulkanDevice> device,
                                                                   const device::Artefact& artefact) {
  if (const Error* lost = device->lost()) return *lost;
  const AdapterInfo& info = device->info();
  if (artefact.language != "spirv")
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' is in language '{}'; device '{}' accepts 'spirv'.", artefact.kernel,
                            artefact.language, info.id));
  if (!info.features.contains(artefact.needs))
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' needs {}, which device '{}' does not offer.", artefact.kernel,
                            device::lacking(info, artefact.needs), info.id));
  if (auto plain = device::check_plain_launch(artefact, "Vulkan device"); !plain)
    return std::move(plain).error();
  if (auto checked = device::check_passing(artefact, "Vulkan device",
                                           {Kind::descriptor, Kind::bytes, Kind::address, Kind::span});
      !checked)
    return std::move(checked).error();
  auto executable =
      base::make_own<VulkanExecutable>(std::move(device), artefact, Bytes{artefact.code.size()});
  if (auto built = executable->build(artefact); !built) return std::move(built).error();
  return executable;
}

Result<void> VulkanExecutable::build(const device::Artefact& artefact) {
  VulkanDevice& device = vulkan();
  auto module = read_spirv(artefact, device.physical());
  if (!module) return std::move(module).error();
  if (auto checked = check_spirv(*module, artefact, device.physical()); !checked) return checked;
  if (const std::uint64_t limit = device.info().limits.loop_iterations; limit != 0) {
    const spirv::EntryPoint* const entry = module->compute_entry(artefact.entry);
    const auto iterations = entry ? spirv::most_iterations(*module, entry->function) : std::nullopt;
    may_end_loops_early_ = !iterations || *iterations > limit;
  }

  for (const device::Passing& passing : artefact.passing)
    if (passing.kind == Kind::descriptor) bindings_.push_back(passing.binding);
  std::sort(bindings_.begin(), bindings_.end());
  if (std::adjacent_find(bindings_.begin(), bindings_.end()) != bindings_.end())
    return Error(Errc::invalid_argument,
                 base::text("Two parameters of kernel '{}' have the same binding.", artefact.kernel));
  const std::uint64_t room =
      std::min(device.info().limits.parameter_bytes.count, device.options().parameter_bytes.count);
  if (parameter_bytes() > room ||
      (parameter_bytes() != 0 && has_narrow_parameters_without_feature(*module, device.physical()))) {
    std::uint32_t unused = 0;
    for (const std::uint32_t binding : bindings_) unused += binding == unused ? 1 : 0;
    bindings_.insert(std::lower_bound(bindings_.begin(), bindings_.end(), unused), unused);
    spilled_ = unused;
  }
  if (bindings_.size() > device.info().limits.bound_buffers)
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' binds {} buffers, but device '{}' allows {}.", artefact.kernel,
                            bindings_.size(), device.info().id, device.info().limits.bound_buffers));
  if (auto made = make_layout(); !made) return made;
  spirv::Words words = spilled_ ? spirv::spill_push_constants(*module, *spilled_) : module->words;
  auto made = make_pipeline(words, 0);
  if (!made) return std::move(made).error();
  pipeline_ = *made;
  if (row_groups() > device.info().limits.groups.x) words_ = std::move(words);
  return {};
}

std::uint64_t VulkanExecutable::row_groups() const noexcept {
  constexpr std::uint64_t most_items = std::uint64_t{1} << 32;
  const Extent3 most = vulkan().info().limits.groups;
  return std::min(most.x * most.y, most_items / artefact().workgroup.x);
}

/// Several threads may create the pipeline at the same time. The first pipeline stays.
Result<VkPipeline> VulkanExecutable::row_pipeline() const {
  if (const VkPipeline made = row_pipeline_) return made;
  VulkanDevice& device = vulkan();
  const std::string& kernel = artefact().kernel;
  const auto module = spirv::Module::parse(words_);
  if (!module) return module.error();
  auto words = spirv::split_into_rows(
      *module, kernel, static_cast<std::uint32_t>(device.info().limits.groups.x), artefact().workgroup);
  if (!words) return std::move(words).error();
  auto made = make_pipeline(*words, VK_PIPELINE_CREATE_DISPATCH_BASE_BIT);
  if (!made) return made;
  VkPipeline before = VK_NULL_HANDLE;
  if (row_pipeline_.compare_exchange_strong(before, *made)) return made;
  device.vk.DestroyPipeline(device.handle(), *made, nullptr);
  return before;
}

Result<void> VulkanExecutable::make_layout() {
  VulkanDevice& device = vulkan();
  if (!bindings_.empty()) {
    std::vector<VkDescriptorSetLayoutBinding> list;
    for (const std::uint32_t binding : bindings_)
      list.push_back({.binding = binding,
                      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                      .descriptorCount = 1,
                      .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                      .pImmutableSamplers = nullptr});
    const VkDescriptorSetLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                               .pNext = nullptr,
                                               .flags = 0,
                                               .bindingCount = static_cast<std::uint32_t>(list.size()),
                                               .pBindings = list.data()};
    VkDescriptorSetLayout made = VK_NULL_HANDLE;
    if (const VkResult r = device.vk.CreateDescriptorSetLayout(device.handle(), &info, nullptr, &made);
        r != VK_SUCCESS)
      return failed(r, "vkCreateDescriptorSetLayout");
    set_layout_ = made;
  }
  const bool pushes = parameter_bytes() != 0 && !spilled_;
  const VkPushConstantRange range{
      .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = parameter_bytes()};
  const VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                        .pNext = nullptr,
                                        .flags = 0,
                                        .setLayoutCount = bindings_.empty() ? 0u : 1u,
                                        .pSetLayouts = &set_layout_,
                                        .pushConstantRangeCount = pushes ? 1u : 0u,
                                        .pPushConstantRanges = &range};
  VkPipelineLayout made = VK_NULL_HANDLE;
  if (const VkResult r = device.vk.CreatePipelineLayout(device.handle(), &info, nullptr, &made);
      r != VK_SUCCESS)
    return failed(r, "vkCreatePipelineLayout");
  layout_ = made;
  return {};
}

Result<VkPipeline> VulkanExecutable::make_pipeline(std::span<const std::uint32_t> words,
                                                   VkPipelineCreateFlags flags) const {
  VulkanDevice& device = vulkan();
  const auto remembered = device.pipelines();
  if (!remembered) return remembered.error();
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<std::byte> values;
  std::vector<device::Specialization> constants = artefact().specialization;
  const auto is_set = [&](std::uint32_t id) {
    return std::ranges::find(constants, id, &device::Specialization::id) != constants.end();
  };
  if (artefact().needs.has(Feature::cooperative_matrix)) {
    const Extent3& size = device.info().limits.cooperative_matrix;
    const std::uint64_t sizes[] = {size.x, size.y, size.z};
    for (std::size_t i = 0; i < 3; ++i)
      if (const std::uint32_t id = cooperative_matrix_constants[i]; !is_set(id))
        constants.push_back({.id = id, .size = 4, .bits = sizes[i]});
  }
  for (const device::Specialization& constant : constants) {
    const std::uint32_t size = constant.size == 8 ? 8 : 4;
    entries.push_back(
        {.constantID = constant.id, .offset = static_cast<std::uint32_t>(values.size()), .size = size});
    values.resize(values.size() + size);
    std::memcpy(values.data() + values.size() - size, &constant.bits,
                size);  // Vulkan hosts are little endian
  }
  const VkSpecializationInfo specialization{.mapEntryCount = static_cast<std::uint32_t>(entries.size()),
                                            .pMapEntries = entries.data(),
                                            .dataSize = values.size(),
                                            .pData = values.data()};

  const VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                      .pNext = nullptr,
                                      .flags = 0,
                                      .codeSize = words.size_bytes(),
                                      .pCode = words.data()};
  VkShaderModule shader = VK_NULL_HANDLE;
  if (const VkResult r = device.vk.CreateShaderModule(device.handle(), &code, nullptr, &shader);
      r != VK_SUCCESS)
    return failed(r, "vkCreateShaderModule");
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.flags = flags;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = artefact().entry.c_str();
  info.stage.pSpecializationInfo = entries.empty() ? nullptr : &specialization;
  info.layout = layout_;
  info.basePipelineIndex = -1;
  VkPipeline made = VK_NULL_HANDLE;
  const VkResult r = device.vk.CreateComputePipelines(device.handle(), *remembered, 1, &info, nullptr, &made);
  device.vk.DestroyShaderModule(device.handle(), shader, nullptr);
  if (r != VK_SUCCESS) return failed(r, "vkCreateComputePipelines");
  return made;
}

Error VulkanExecutable::failed(VkResult result, const char* api) const {
  VulkanDevice& device = vulkan();
  std::string sentence = base::text("The driver of device '{}' cannot create a pipeline of kernel '{}'.",
                                    device.info().id, artefact().kernel);
  // If the driver gives no reason, it has most likely rejected the code.
  if (result == VK_ERROR_UNKNOWN || result == VK_ERROR_INITIALIZATION_FAILED)
    return Error(Errc::compile_failed, std::move(sentence),
                 NativeError{api, result, std::string(meaning(result).name)});
  return device.failed(result, api, std::move(sentence));
}

VulkanExecutable::~VulkanExecutable() {
  VulkanDevice& device = vulkan();
  for (const VkPipeline made : {pipeline_, row_pipeline_.load()})
    if (made != VK_NULL_HANDLE) device.vk.DestroyPipeline(device.handle(), made, nullptr);
  if (layout_ != VK_NULL_HANDLE) device.vk.DestroyPipelineLayout(device.handle(), layout_, nullptr);
  if (set_layout_ != VK_NULL_HANDLE)
    device.vk.DestroyDescriptorSetLayout(device.handle(), set_layout_, nullptr);
}

}  // namespace wye::vulkan
