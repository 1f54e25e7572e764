#include "backend/vulkan/spirv_check.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {
namespace {

using spirv::Instruction;
using Id = std::uint32_t;

/// What the module says about one of its ids.
struct About {
  std::uint16_t op = 0;
  std::uint64_t bytes = 0;    // of a type, as shared memory
  Id pointee = 0;             // of a pointer type
  std::uint64_t value = 0;    // of a constant
  std::array<Id, 3> parts{};  // of a composite constant
  std::optional<std::uint32_t> set, binding, spec;
  bool is_buffer_block = false;
  bool is_workgroup_size = false;
  std::uint32_t last_member = 0;  // largest offset of a struct's members
};

struct Variable {
  Id id;
  Id type;  // a pointer's
  std::uint32_t storage;
};

/// What a walk over a module finds.
struct Facts {
  std::unordered_map<Id, About> ids;
  std::vector<Variable> variables;
  std::vector<std::uint32_t> capabilities;
  std::vector<std::string> extensions;
  bool found = false;     // the entry point
  bool computes = false;  // it is a compute shader's
  std::optional<Extent3> workgroup;

  const About& about(Id id) const {
    static const About nothing;
    const auto it = ids.find(id);
    return it == ids.end() ? nothing : it->second;
  }
};

class Walk {
 public:
  Walk(const spirv::Module& module, const device::Artefact& artefact) : artefact_(artefact) {
    module.each([this](const Instruction& i) { step(i); });
    workgroup();
  }
  Facts facts;

 private:
  About& at(Id id) { return facts.ids[id]; }

  void step(const Instruction& i) {
    switch (i.op) {
      case spirv::op_capability: facts.capabilities.push_back(i[0]); break;
      case spirv::op_extension: facts.extensions.emplace_back(spirv::text_at(i, 0).text); break;
      case spirv::op_entry_point: entry(i); break;
      case spirv::op_execution_mode:
      case spirv::op_execution_mode_id: mode(i); break;
      case spirv::op_decorate: decorate(i); break;
      case spirv::op_member_decorate:
        if (i[2] == spirv::offset) at(i[0]).last_member = std::max(at(i[0]).last_member, i[3]);
        break;
      case spirv::op_variable:
        if (i.operands.size() >= 3) facts.variables.push_back({i[1], i[0], i[2]});
        break;
      default: declare(i);
    }
  }

  void entry(const Instruction& i) {
    if (spirv::text_at(i, 2).text != artefact_.entry) return;
    facts.found = true;
    if (i[0] == spirv::gl_compute) {
      facts.computes = true;
      function_ = i[1];
    }
  }

  void mode(const Instruction& i) {
    if (!facts.computes || i[0] != function_ || i.operands.size() < 5) return;
    if (i[1] != spirv::mode_local_size && i[1] != spirv::mode_local_size_id) return;
    size_by_id_ = i[1] == spirv::mode_local_size_id;
    size_ = {i[2], i[3], i[4]};
  }

  void decorate(const Instruction& i) {
    About& about = at(i[0]);
    switch (i[1]) {
      case spirv::descriptor_set: about.set = i[2]; break;
      case spirv::binding: about.binding = i[2]; break;
      case spirv::spec_id: about.spec = i[2]; break;
      case spirv::buffer_block: about.is_buffer_block = true; break;
      case spirv::built_in: about.is_workgroup_size = i[2] == spirv::built_in_workgroup_size; break;
      default: break;
    }
  }

  /// Types and constants. What is declared was declared before it is used, so sizes are known on the way.
  void declare(const Instruction& i) {
    switch (i.op) {
      case spirv::op_type_bool: type(i, 4); break;
      case spirv::op_type_int:
      case spirv::op_type_float: type(i, i[1] / 8); break;
      case spirv::op_type_vector:
      case spirv::op_type_matrix: type(i, facts.about(i[1]).bytes * i[2]); break;
      case spirv::op_type_array: type(i, times(facts.about(i[1]).bytes, facts.about(i[2]).value)); break;
      case spirv::op_type_struct: {
        std::uint64_t bytes = 0;
        for (const Id member : i.operands.subspan(std::min<std::size_t>(1, i.operands.size())))
          bytes += facts.about(member).bytes;
        type(i, bytes);
        break;
      }
      case spirv::op_type_pointer:
        type(i, 8);
        at(i[0]).pointee = i[2];
        break;
      case spirv::op_constant:
      case spirv::op_spec_constant: {
        About& about = at(i[1]);
        about.op = i.op;
        about.value = i[2] | (i.operands.size() > 3 ? std::uint64_t{i[3]} << 32 : 0);
        if (about.spec)
          for (const device::Specialization& given : artefact_.specialization)
            if (given.id == *about.spec) about.value = given.bits;
        break;
      }
      case spirv::op_constant_composite:
      case spirv::op_spec_constant_composite: {
        About& about = at(i[1]);
        about.op = i.op;
        about.parts = {i[2], i[3], i[4]};
        if (about.is_workgroup_size) built_in_ = i[1];
        break;
      }
      default: break;
    }
  }

  void type(const Instruction& i, std::uint64_t bytes) {
    at(i[0]).op = i.op;
    at(i[0]).bytes = bytes;
  }

  static std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? ~std::uint64_t{0} : product;
  }

  /// The workgroup in the end: a constant that is decorated so goes before the execution mode.
  void workgroup() {
    std::array<Id, 3> ids = size_;
    if (built_in_ != 0)
      ids = facts.about(built_in_).parts;
    else if (!size_by_id_) {
      if (size_[0] != 0) facts.workgroup = Extent3(size_[0], size_[1], size_[2]);
      return;
    }
    std::array<std::uint64_t, 3> n{};
    for (std::size_t d = 0; d < 3; ++d) {
      const About& about = facts.about(ids[d]);
      if (about.op != spirv::op_constant && about.op != spirv::op_spec_constant)
        return;  // computed: not known here
      n[d] = about.value;
    }
    facts.workgroup = Extent3(n[0], n[1], n[2]);
  }

  const device::Artefact& artefact_;
  Id function_ = 0;
  std::array<std::uint32_t, 3> size_{};  // literals, or ids
  bool size_by_id_ = false;
  Id built_in_ = 0;
};

/// Whether a capability is there; nothing where wye does not know it.
std::optional<bool> offers(std::uint32_t capability, const PhysicalDevice& physical) {
  const FeatureChain& on = physical.enabled;
  const auto subgroup = [&](VkSubgroupFeatureFlags flag) {
    return (physical.subgroup_operations & flag) != 0;
  };
  switch (capability) {
    case 0:     // Matrix
    case 1:     // Shader
    case 5347:  // PhysicalStorageBufferAddresses
      return true;
    case 9: return on.v12.shaderFloat16;
    case 10: return on.core.features.shaderFloat64;
    case 11: return on.core.features.shaderInt64;
    case 12: return on.v12.shaderBufferInt64Atomics;
    case 22: return on.core.features.shaderInt16;
    case 39: return on.v12.shaderInt8;
    case 61: return subgroup(VK_SUBGROUP_FEATURE_BASIC_BIT);
    case 62: return subgroup(VK_SUBGROUP_FEATURE_VOTE_BIT);
    case 63: return subgroup(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
    case 64: return subgroup(VK_SUBGROUP_FEATURE_BALLOT_BIT);
    case 65: return subgroup(VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
    case 66: return subgroup(VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT);
    case 67: return subgroup(VK_SUBGROUP_FEATURE_CLUSTERED_BIT);
    case 68: return subgroup(VK_SUBGROUP_FEATURE_QUAD_BIT);
    case spirv::capability_storage_buffer16: return on.v11.storageBuffer16BitAccess;
    case spirv::capability_storage_push_constant16:  // or spilled, see below
      return on.v11.storagePushConstant16 || on.v11.storageBuffer16BitAccess;
    case spirv::capability_storage_buffer8: return on.v12.storageBuffer8BitAccess;
    case spirv::capability_storage_push_constant8:
      return on.v12.storagePushConstant8 || on.v12.storageBuffer8BitAccess;
    case 5345: return on.v12.vulkanMemoryModel;
    case 5346: return on.v12.vulkanMemoryModelDeviceScope;
    case 6033: return on.has_atomic_float && on.atomic_float.shaderBufferFloat32AtomicAdd;
    default: return std::nullopt;
  }
}

/// Whether a module may declare a SPIR-V extension for the device; nothing if wye does not know it.
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
  return std::nullopt;
}

Result<void> check_descriptor(const Facts& facts, const Variable& variable,
                              const device::Artefact& artefact) {
  const About& about = facts.about(variable.id);
  const Id pointee = facts.about(variable.type).pointee;
  const std::uint32_t set = about.set.value_or(0), binding = about.binding.value_or(0);
  const auto refused = [&](const char* why) {
    return Error(Errc::compile_failed,
                 base::text("Kernel '{}' uses set {}, binding {}, {}.", artefact.kernel, set, binding, why));
  };
  if (!about.set || !about.binding)
    return Error(Errc::compile_failed,
                 base::text("A resource of kernel '{}' has no set or no binding.", artefact.kernel));
  if (set != 0) return refused("and only set 0 is bound");
  const bool is_buffer = variable.storage == spirv::storage_buffer ||
                         (variable.storage == spirv::uniform && facts.about(pointee).is_buffer_block);
  if (!is_buffer || facts.about(pointee).op != spirv::op_type_struct)
    return refused("for something that is not one storage buffer");
  for (const device::Passing& passing : artefact.passing)
    if (passing.kind == device::Passing::Kind::descriptor && passing.binding == binding) return {};
  return refused("which none of its parameters is bound to");
}

Result<void> check_workgroup(const Facts& facts, const device::Artefact& artefact,
                             const PhysicalDevice& physical) {
  const Extent3 size = facts.workgroup.value_or(artefact.workgroup);
  const Limits& limits = physical.info.limits;
  if (size != artefact.workgroup)
    return Error(
        Errc::compile_failed,
        base::text(
            "The workgroup of kernel '{}' ({} x {} x {}) is not the one its SPIR-V declares ({} x {} x {}).",
            artefact.kernel, artefact.workgroup.x, artefact.workgroup.y, artefact.workgroup.z, size.x, size.y,
            size.z));
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

bool has_narrow_parameters_without_feature(const spirv::Module& module, const PhysicalDevice& physical) {
  bool found = false;
  module.each([&](const Instruction& i) {
    if (i.op != spirv::op_capability) return;
    found |= i[0] == spirv::capability_storage_push_constant16 && !physical.enabled.v11.storagePushConstant16;
    found |= i[0] == spirv::capability_storage_push_constant8 && !physical.enabled.v12.storagePushConstant8;
  });
  return found;
}

Result<void> check_spirv(const spirv::Module& module, const device::Artefact& artefact,
                         const PhysicalDevice& physical) {
  const Facts facts = Walk(module, artefact).facts;
  if (!facts.found || !facts.computes)
    return Error(Errc::compile_failed,
                 base::text("The SPIR-V of kernel '{}' has no compute entry point '{}'.", artefact.kernel,
                            artefact.entry));
  for (const std::uint32_t capability : facts.capabilities) {
    const auto offered = offers(capability, physical);
    if (!offered || !*offered)
      return Error(
          Errc::unsupported,
          base::text("Kernel '{}' needs SPIR-V capability {}, which {} offers.", artefact.kernel, capability,
                     offered ? base::text("device '{}' does not", physical.info.id) : "wye never"));
  }
  for (std::string extension : facts.extensions) {
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
  for (const Variable& variable : facts.variables) {
    const Id pointee = facts.about(variable.type).pointee;
    switch (variable.storage) {
      case spirv::uniform_constant:
      case spirv::uniform:
      case spirv::storage_buffer:
        if (auto checked = check_descriptor(facts, variable, artefact); !checked) return checked;
        break;
      case spirv::push_constant:
        if (facts.about(pointee).last_member >= artefact.parameter_bytes)
          return Error(Errc::compile_failed, base::text("The push-constant block of kernel '{}' has a member "
                                                        "at byte {}, and its parameters end at {}.",
                                                        artefact.kernel, facts.about(pointee).last_member,
                                                        artefact.parameter_bytes));
        break;
      case spirv::workgroup: shared += facts.about(pointee).bytes; break;
      default: break;
    }
  }
  if (shared > physical.info.limits.shared_memory.count)
    return Error(
        Errc::unsupported,
        base::text("Shared memory of kernel '{}' ({} bytes) exceeds the limit of device '{}' ({} bytes).",
                   artefact.kernel, shared, physical.info.id, physical.info.limits.shared_memory.count));
  return check_workgroup(facts, artefact, physical);
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
