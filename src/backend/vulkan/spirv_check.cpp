#include "backend/vulkan/spirv_check.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

using spirv::Module;
using spirv::StorageClass;
using spirv::Type;
using spirv::Variable;
using spv::Capability;

/// Returns whether the device offers a capability; nothing if wye does not know it.
std::optional<bool> offers(Capability capability, const PhysicalDevice& physical) {
  const FeatureChain& on = physical.enabled;
  const auto subgroup = [&](VkSubgroupFeatureFlags flag) {
    return (physical.subgroup_operations & flag) != 0;
  };
  if (capability == spirv::cooperative_matrix) return physical.info.features.has(Feature::cooperative_matrix);
  switch (capability) {
    case Capability::Matrix:
    case Capability::Shader:
    case Capability::PhysicalStorageBufferAddresses: return true;
    case Capability::Float16: return on.v12.shaderFloat16;
    case Capability::Float64: return on.core.features.shaderFloat64;
    case Capability::Int64: return on.core.features.shaderInt64;
    case Capability::Int64Atomics: return on.v12.shaderBufferInt64Atomics;
    case Capability::Int16: return on.core.features.shaderInt16;
    case Capability::Int8: return on.v12.shaderInt8;
    case Capability::GroupNonUniform: return subgroup(VK_SUBGROUP_FEATURE_BASIC_BIT);
    case Capability::GroupNonUniformVote: return subgroup(VK_SUBGROUP_FEATURE_VOTE_BIT);
    case Capability::GroupNonUniformArithmetic: return subgroup(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
    case Capability::GroupNonUniformBallot: return subgroup(VK_SUBGROUP_FEATURE_BALLOT_BIT);
    case Capability::GroupNonUniformShuffle: return subgroup(VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
    case Capability::GroupNonUniformShuffleRelative:
      return subgroup(VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT);
    case Capability::GroupNonUniformClustered: return subgroup(VK_SUBGROUP_FEATURE_CLUSTERED_BIT);
    case Capability::GroupNonUniformQuad: return subgroup(VK_SUBGROUP_FEATURE_QUAD_BIT);
    case Capability::StorageBuffer16BitAccess: return on.v11.storageBuffer16BitAccess;
    case Capability::StoragePushConstant16:  // otherwise the parameters spill, see below
      return on.v11.storagePushConstant16 || on.v11.storageBuffer16BitAccess;
    case Capability::StorageBuffer8BitAccess: return on.v12.storageBuffer8BitAccess;
    case Capability::StoragePushConstant8:
      return on.v12.storagePushConstant8 || on.v12.storageBuffer8BitAccess;
    case Capability::VulkanMemoryModel: return on.v12.vulkanMemoryModel;
    case Capability::VulkanMemoryModelDeviceScope: return on.v12.vulkanMemoryModelDeviceScope;
    case Capability::AtomicFloat32AddEXT:
      return on.has_atomic_float && on.atomic_float.shaderBufferFloat32AtomicAdd;
    default: return std::nullopt;
  }
}

/// Returns whether a module may declare a SPIR-V extension for the device; nothing if wye does not
/// know it.
/// Source: the Vulkan specification, appendix "Vulkan Environment for SPIR-V".
std::optional<bool> offers(std::string_view extension, const PhysicalDevice& physical) {
  constexpr std::string_view of_1_2[] = {"SPV_KHR_variable_pointers",
                                         "SPV_KHR_shader_draw_parameters",
                                         "SPV_KHR_8bit_storage",
                                         "SPV_KHR_16bit_storage",
                                         "SPV_KHR_float_controls",
                                         "SPV_KHR_multiview",
                                         "SPV_KHR_storage_buffer_storage_class",
                                         "SPV_KHR_device_group",
                                         "SPV_EXT_descriptor_indexing",
                                         "SPV_KHR_vulkan_memory_model",
                                         "SPV_KHR_physical_storage_buffer",
                                         "SPV_EXT_shader_viewport_index_layer"};
  constexpr std::string_view of_1_3[] = {
      "SPV_EXT_demote_to_helper_invocation", "SPV_KHR_non_semantic_info", "SPV_KHR_terminate_invocation",
      "SPV_KHR_subgroup_uniform_control_flow", "SPV_KHR_integer_dot_product"};
  constexpr std::uint32_t spirv_of_1_3 = 0x00010600;
  const auto in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), extension) != std::end(list);
  };
  if (in(of_1_2)) return true;
  if (in(of_1_3)) return physical.spirv_version >= spirv_of_1_3;
  if (extension == "SPV_EXT_shader_atomic_float_add") return physical.enabled.has_atomic_float;
  if (extension == "SPV_KHR_cooperative_matrix") return physical.enabled.has_cooperative_matrix;
  return std::nullopt;
}

Result<void> check_descriptor(const Module& module, const Variable& variable,
                              const device::Artefact& artefact) {
  const spirv::Decorations& decorations = module.decoration(variable.id);
  const std::uint32_t set = decorations.set.value_or(0), binding = decorations.binding.value_or(0);
  const auto refused = [&](const char* why) {
    return Error(Errc::compile_failed,
                 base::text("Kernel '{}' uses set {}, binding {}, {}.", artefact.kernel, set, binding, why));
  };
  if (!decorations.set || !decorations.binding)
    return Error(Errc::compile_failed,
                 base::text("A resource of kernel '{}' has no set or no binding.", artefact.kernel));
  if (set != 0) return refused("and only set 0 is bound");
  const spirv::Id pointee = module.type(variable.type).element;
  const bool is_buffer =
      variable.storage == StorageClass::StorageBuffer ||
      (variable.storage == StorageClass::Uniform && module.decoration(pointee).buffer_block);
  if (!is_buffer || module.type(pointee).kind != Type::Kind::structure)
    return refused("for a resource that is not a storage buffer");
  for (const device::Passing& passing : artefact.passing)
    if (passing.kind == device::Passing::Kind::descriptor && passing.binding == binding) return {};
  return refused("which has no parameter");
}

/// Returns the largest offset of a member of the push-constant block.
std::uint32_t last_member(const Module& module, const Variable& variable) {
  const spirv::Id block = module.type(variable.type).element;
  std::uint32_t last = 0;
  for (std::uint32_t m = 0; m < module.type(block).members.size(); ++m)
    last = std::max(last, module.decoration(block, m).offset.value_or(0));
  return last;
}

Result<void> check_workgroup(const Module& module, const spirv::EntryPoint& entry,
                             const device::Artefact& artefact, const PhysicalDevice& physical) {
  const Extent3 size = module.workgroup(entry).size.value_or(artefact.workgroup);
  const Limits& limits = physical.info.limits;
  if (size != artefact.workgroup)
    return Error(Errc::compile_failed, base::text("The workgroup of kernel '{}' ({} x {} x {}) is not the "
                                                  "workgroup that its SPIR-V declares ({} x {} x {}).",
                                                  artefact.kernel, artefact.workgroup.x, artefact.workgroup.y,
                                                  artefact.workgroup.z, size.x, size.y, size.z));
  const struct {
    const char* what;
    std::uint64_t wanted, limit;
  } rows[] = {{"width", size.x, limits.workgroup.x},
              {"height", size.y, limits.workgroup.y},
              {"depth", size.z, limits.workgroup.z},
              {"size", size.count(), limits.workgroup_invocations}};
  for (const auto& row : rows)
    if (row.wanted > row.limit || row.wanted == 0)
      return Error(
          Errc::unsupported,
          base::text("Workgroup {} of kernel '{}' ({}) is outside the limit of device '{}' (1 to {}).",
                     row.what, artefact.kernel, row.wanted, physical.info.id, row.limit));
  return {};
}

}  // namespace

Result<Module> read_spirv(const device::Artefact& artefact, const PhysicalDevice& physical) {
  const auto refused = [&](std::string why) {
    return Error(Errc::compile_failed, base::text("The SPIR-V of kernel '{}' {}", artefact.kernel, why));
  };
  if (artefact.code.size() % 4 != 0)
    return refused(base::text("is truncated ({} bytes).", artefact.code.size()));
  spirv::Words words(artefact.code.size() / 4);
  std::ranges::copy(artefact.code, std::as_writable_bytes(std::span(words)).begin());
  auto module = Module::parse(std::move(words), artefact.specialization);
  if (!module) return refused(base::text("cannot be read: {}", module.error().sentence()));
  if (const std::uint32_t newest = physical.spirv_version; module->version > newest)
    return refused(base::text("has version {}.{}, but the device supports up to {}.{}.",
                              module->version >> 16, module->version >> 8 & 0xff, newest >> 16,
                              newest >> 8 & 0xff));
  return module;
}

bool has_narrow_parameters_without_feature(const Module& module, const PhysicalDevice& physical) {
  const auto declares = [&](Capability capability) {
    return std::count(module.capabilities.begin(), module.capabilities.end(), capability) != 0;
  };
  return (declares(Capability::StoragePushConstant16) && !physical.enabled.v11.storagePushConstant16) ||
         (declares(Capability::StoragePushConstant8) && !physical.enabled.v12.storagePushConstant8);
}

Result<void> check_spirv(const Module& module, const device::Artefact& artefact,
                         const PhysicalDevice& physical) {
  const spirv::EntryPoint* entry = module.compute_entry(artefact.entry);
  if (!entry)
    return Error(Errc::compile_failed,
                 base::text("The SPIR-V of kernel '{}' has no compute entry point '{}'.", artefact.kernel,
                            artefact.entry));
  for (const Capability capability : module.capabilities) {
    const auto offered = offers(capability, physical);
    if (!offered || !*offered)
      return Error(Errc::unsupported,
                   base::text("Kernel '{}' needs SPIR-V capability {}, which {} offers.", artefact.kernel,
                              static_cast<std::uint32_t>(capability),
                              offered ? base::text("device '{}' does not", physical.info.id) : "wye never"));
  }
  for (std::string extension : module.extensions) {
    const auto offered = offers(extension, physical);
    if (offered && *offered) continue;
    constexpr std::size_t most_shown = 64;
    extension.resize(std::min(extension.size(), most_shown));
    for (char& c : extension)
      if (c < ' ' || c > '~') c = '?';
    return Error(
        Errc::unsupported,
        base::text("Kernel '{}' declares the SPIR-V extension '{}', which {} offers.", artefact.kernel,
                   extension, offered ? base::text("device '{}' does not", physical.info.id) : "wye never"));
  }
  std::uint64_t shared = 0;
  for (const Variable& variable : module.variables) {
    switch (variable.storage) {
      case StorageClass::UniformConstant:
      case StorageClass::Uniform:
      case StorageClass::StorageBuffer:
        if (auto checked = check_descriptor(module, variable, artefact); !checked) return checked;
        break;
      case StorageClass::PushConstant:
        if (const std::uint32_t last = last_member(module, variable); last >= artefact.parameter_bytes)
          return Error(Errc::compile_failed, base::text("The push-constant block of kernel '{}' has a member "
                                                        "at byte {}, and its parameters end at {}.",
                                                        artefact.kernel, last, artefact.parameter_bytes));
        break;
      case StorageClass::Workgroup: shared += module.pointee(variable).packed_size; break;
      default: break;
    }
  }
  if (shared > physical.info.limits.shared_memory.count)
    return Error(
        Errc::unsupported,
        base::text("Shared memory of kernel '{}' ({} bytes) exceeds the limit of device '{}' ({} bytes).",
                   artefact.kernel, shared, physical.info.id, physical.info.limits.shared_memory.count));
  return check_workgroup(module, *entry, artefact, physical);
}

}  // namespace wye::vulkan
