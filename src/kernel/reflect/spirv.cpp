#include "kernel/reflect/spirv.hpp"

#include <algorithm>
#include <spirv/unified1/spirv.hpp11>
#include <unordered_set>

#include "base/text.hpp"
#include "spirv/module.hpp"
#include "spirv/writes.hpp"

namespace wye::inline v0::kernel {

namespace {

using spirv::Decorations;
using spirv::EntryPoint;
using spirv::Function;
using spirv::Id;
using spirv::Instruction;
using spirv::Module;
using spirv::Op;
using spirv::printable;
using spirv::Roots;
using spirv::StorageClass;
using spirv::Type;
using spirv::Variable;

constexpr std::uint32_t version_1_4 = 0x00010400;
constexpr std::uint32_t most_push_bytes = 1 << 16;
constexpr std::uint32_t bindings_end = 1024;  // drivers allocate tables for the largest number

Error unsupported(std::string sentence) { return Error(Errc::unsupported, std::move(sentence)); }

std::uint32_t round_up(std::uint64_t size, std::uint32_t alignment) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((size + alignment - 1) / alignment * alignment, ~0u));
}

struct Capability {
  spv::Capability number;
  const char* name;
  bool known;  ///< supported by wye: all devices have it, or it is a feature
  std::optional<Feature> feature;
};

constexpr Capability capabilities[] = {
    {spv::Capability::Matrix, "Matrix", true, {}},
    {spv::Capability::Shader, "Shader", true, {}},
    {spv::Capability::PhysicalStorageBufferAddresses, "PhysicalStorageBufferAddresses", true, {}},
    {spv::Capability::Float16, "Float16", true, Feature::float16},
    {spv::Capability::Float64, "Float64", true, Feature::float64},
    {spv::Capability::Int64, "Int64", true, Feature::int64},
    {spv::Capability::Int64Atomics, "Int64Atomics", true, Feature::atomics_int64},
    {spv::Capability::Int16, "Int16", true, Feature::int16},
    {spv::Capability::Int8, "Int8", true, Feature::int8},
    {spv::Capability::GroupNonUniform, "GroupNonUniform", true, Feature::subgroups},
    {spv::Capability::GroupNonUniformVote, "GroupNonUniformVote", true, Feature::subgroups},
    {spv::Capability::GroupNonUniformArithmetic, "GroupNonUniformArithmetic", true, Feature::subgroups},
    {spv::Capability::GroupNonUniformBallot, "GroupNonUniformBallot", true, Feature::subgroups},
    {spv::Capability::GroupNonUniformShuffle, "GroupNonUniformShuffle", true, Feature::subgroups},
    {spv::Capability::GroupNonUniformShuffleRelative, "GroupNonUniformShuffleRelative", true,
     Feature::subgroups},
    {spv::Capability::StorageBuffer16BitAccess, "StorageBuffer16BitAccess", true, Feature::storage16},
    {spv::Capability::StorageBuffer8BitAccess, "StorageBuffer8BitAccess", true, Feature::storage8},
    {spv::Capability::AtomicFloat32AddEXT, "AtomicFloat32AddEXT", true, Feature::atomics_float32},
    {spv::Capability::GroupNonUniformClustered, "GroupNonUniformClustered", true,
     Feature::subgroups_clustered},
    {spv::Capability::StoragePushConstant16, "StoragePushConstant16", true, Feature::parameters16},
    {spv::Capability::StoragePushConstant8, "StoragePushConstant8", true, Feature::parameters8},
    {spv::Capability::VulkanMemoryModel, "VulkanMemoryModel", true, Feature::memory_model},
    {spv::Capability::VulkanMemoryModelDeviceScope, "VulkanMemoryModelDeviceScope", true,
     Feature::memory_model},
    {spirv::cooperative_matrix, "CooperativeMatrixKHR", true, Feature::cooperative_matrix},
    {spv::Capability::Linkage, "Linkage", false, {}},
    {spv::Capability::Kernel, "Kernel", false, {}},
    {spv::Capability::Sampled1D, "Sampled1D", false, {}},
    {spv::Capability::Image1D, "Image1D", false, {}},
    {spv::Capability::SampledBuffer, "SampledBuffer", false, {}},
    {spv::Capability::ImageBuffer, "ImageBuffer", false, {}},
    {spv::Capability::StorageImageExtendedFormats, "StorageImageExtendedFormats", false, {}},
    {spv::Capability::ImageQuery, "ImageQuery", false, {}},
    {spv::Capability::StorageImageReadWithoutFormat, "StorageImageReadWithoutFormat", false, {}},
    {spv::Capability::StorageImageWriteWithoutFormat, "StorageImageWriteWithoutFormat", false, {}},
    {spv::Capability::GroupNonUniformQuad, "GroupNonUniformQuad", false, {}},
    {spv::Capability::UniformAndStorageBuffer16BitAccess, "UniformAndStorageBuffer16BitAccess", false, {}},
    {spv::Capability::VariablePointersStorageBuffer, "VariablePointersStorageBuffer", false, {}},
    {spv::Capability::VariablePointers, "VariablePointers", false, {}},
    {spv::Capability::UniformAndStorageBuffer8BitAccess, "UniformAndStorageBuffer8BitAccess", false, {}},
    {spv::Capability::RayQueryKHR, "RayQueryKHR", false, {}},
    {spv::Capability::ShaderClockKHR, "ShaderClockKHR", false, {}},
    {spv::Capability::RuntimeDescriptorArray, "RuntimeDescriptorArray", false, {}},
    {spv::Capability::AtomicFloat32MinMaxEXT, "AtomicFloat32MinMaxEXT", false, {}},
    {spv::Capability::DotProduct, "DotProduct", false, {}},
    {spv::Capability::AtomicFloat64AddEXT, "AtomicFloat64AddEXT", false, {}},
};

Result<Features> needed_features(const Module& module) {
  Features needs;
  for (const spv::Capability number : module.capabilities) {
    const auto* found = std::find_if(std::begin(capabilities), std::end(capabilities),
                                     [&](const Capability& c) { return c.number == number; });
    if (found == std::end(capabilities) || !found->known)
      return unsupported(base::text("The code needs the SPIR-V capability {}{}, which wye does not offer.",
                                    static_cast<std::uint32_t>(number),
                                    base::parenthesized(found == std::end(capabilities) ? "" : found->name)));
    if (found->feature) needs.add(*found->feature);
  }
  return needs;
}

class Reflection {
 public:
  explicit Reflection(const Module& module) : module_(module) {}

  Result<Interface> run(std::string_view name) {
    if (auto done = find_entry(name); !done) return std::move(done).error();
    auto needs = needed_features(module_);
    if (!needs) return std::move(needs).error();
    out_.needs = *needs;
    if (auto done = find_workgroup(); !done) return std::move(done).error();
    if (auto done = find_resources(); !done) return std::move(done).error();
    follow_writes();
    return std::move(out_);
  }

 private:
  Result<void> find_entry(std::string_view name) {
    entry_ = module_.compute_entry(name);
    if (entry_) return {};
    std::string others;
    for (const EntryPoint& entry : module_.entries)
      if (entry.model == spv::ExecutionModel::GLCompute)
        others += base::text("{}'{}'", others.empty() ? "" : ", ", printable(entry.name));
    return base::invalid(
        others.empty() ? std::string("The code has no compute entry point.")
                       : base::text("The code has no compute entry point '{}' (it has {}).", name, others));
  }

  Result<void> find_workgroup() {
    const spirv::WorkgroupSize workgroup = module_.workgroup(*entry_);
    if (!workgroup.is_declared) return base::invalid("The entry point has no workgroup size.");
    const auto& size = workgroup.size;
    if (!size)
      return unsupported("The workgroup size is computed from constants in a way that wye does not support.");
    if (size->x == 0 || size->y == 0 || size->z == 0)
      return base::invalid(
          base::text("The workgroup size ({} x {} x {}) has a zero dimension.", size->x, size->y, size->z));
    out_.workgroup = *size;
    return {};
  }

  /// Returns the variables of the module that the entry point uses.
  std::vector<const Variable*> used_variables() const {
    std::unordered_set<Id> used;
    const auto entries =
        std::count_if(module_.entries.begin(), module_.entries.end(),
                      [](const EntryPoint& e) { return e.model == spv::ExecutionModel::GLCompute; });
    const bool all = module_.version < version_1_4 && entries == 1;
    if (module_.version >= version_1_4) {
      used.insert(entry_->interface.begin(), entry_->interface.end());
    } else if (!all) {
      // Older modules do not list them. A variable is then used if any word of a reachable function
      // names it.
      for (const Function* function : spirv::reachable(module_, entry_->function))
        for (const Instruction& in : function->body) used.insert(in.operands.begin(), in.operands.end());
    }
    std::vector<const Variable*> found;
    for (const Variable& variable : module_.variables)
      if (all || used.count(variable.id) != 0) found.push_back(&variable);
    return found;
  }

  Result<void> find_resources() {
    for (const Variable* variable : used_variables()) {
      const Type& pointer = module_.type(variable->type);
      switch (variable->storage) {
        case StorageClass::Input:
        case StorageClass::Output:
        case StorageClass::Workgroup:
        case StorageClass::Private:
        case StorageClass::Function: break;
        case StorageClass::PushConstant:
          if (auto done = add_push(*variable, pointer); !done) return done;
          break;
        default:
          if (auto done = add_binding(*variable, pointer); !done) return done;
          break;
      }
    }
    std::sort(out_.bindings.begin(), out_.bindings.end(),
              [](const Binding& a, const Binding& b) { return a.binding < b.binding; });
    return {};
  }

  Result<void> add_binding(const Variable& variable, const Type& pointer) {
    const Decorations& decorations = module_.decoration(variable.id);
    const Type& type = module_.type(pointer.element);
    const std::uint32_t binding = decorations.binding.value_or(0);
    const std::uint32_t set = decorations.set.value_or(0);
    const std::string name = buffer_name(variable.id, pointer.element);
    const auto refuse = [&](std::string_view what) {
      return unsupported(
          base::text("Binding {}{} of set {} is {}; wye accepts only storage buffers of set 0.", binding,
                     base::parenthesized(name), set, what));
    };
    const bool buffer =
        variable.storage == StorageClass::StorageBuffer ||
        (variable.storage == StorageClass::Uniform && module_.decoration(pointer.element).buffer_block);
    switch (type.kind) {
      case Type::Kind::array:
      case Type::Kind::runtime_array: return refuse("an array of resources");
      case Type::Kind::image: return refuse("an image");
      case Type::Kind::sampler: return refuse("a sampler");
      case Type::Kind::acceleration_structure: return refuse("an acceleration structure");
      case Type::Kind::structure: break;
      default: return refuse("of an unknown kind");
    }
    if (!buffer)
      return refuse(variable.storage == StorageClass::Uniform ? "a uniform buffer" : "of an unknown kind");
    if (set != 0) return refuse("a storage buffer of another set");
    if (!decorations.binding)
      return base::invalid(
          base::text("The storage buffer{} has no binding number.", base::parenthesized(name)));
    if (binding >= bindings_end)
      return unsupported(base::text("Binding number {}{} exceeds the limit ({}).", binding,
                                    base::parenthesized(name), bindings_end - 1));

    const Memory memory = memory_of(pointer.element, decorations);
    for (std::size_t i = 0; i < out_.bindings.size(); ++i) {
      Binding& there = out_.bindings[i];
      if (there.binding != binding) continue;
      // The variable is another view of a bound buffer. A property in which the views differ is
      // unknown.
      variables_.push_back({variable.id, binding});
      there.memory.declared = static_cast<Access>(static_cast<unsigned>(there.memory.declared) |
                                                  static_cast<unsigned>(memory.declared));
      if (there.memory.stride != memory.stride || there.memory.component != memory.component)
        there.memory.stride = 0, there.memory.component = ElementType::opaque;
      if (there.memory.layout != memory.layout) there.memory.layout.clear();
      return {};
    }
    variables_.push_back({variable.id, binding});
    out_.bindings.push_back({binding, name, memory});
    return {};
  }

  /// Returns the variable's name, otherwise the name of the block's only member, otherwise the name
  /// of the block.
  std::string buffer_name(Id variable, Id block) const {
    if (std::string name = module_.name(variable); !name.empty())
      return name.substr(name.rfind('.') + 1);  // Slang's "entryPointParams.x"
    if (module_.type(block).members.size() == 1)
      if (std::string name = module_.name(block, 0); !name.empty()) return name;
    return module_.name(block);
  }

  /// Describes the memory behind a pointer to `pointee`: the elements of a block's only member,
  /// otherwise those of `pointee`.
  Memory memory_of(Id pointee, const Decorations& variable, std::uint32_t pointer_stride = 0) const {
    Memory memory;
    const Type* shown = &module_.type(pointee);
    bool writable = !variable.non_writable, readable = !variable.non_readable;
    if (shown->kind == Type::Kind::structure) {
      bool any_writable = shown->members.empty(), any_readable = any_writable;
      for (std::uint32_t m = 0; m < shown->members.size(); ++m) {
        any_writable |= !module_.decoration(pointee, m).non_writable;
        any_readable |= !module_.decoration(pointee, m).non_readable;
      }
      writable &= any_writable;
      readable &= any_readable;
      if (shown->members.size() == 1) shown = &module_.type(shown->members[0]);
    }
    const bool whole = shown == &module_.type(pointee) && shown->kind == Type::Kind::structure;
    if (shown->kind == Type::Kind::array || shown->kind == Type::Kind::runtime_array) {
      memory.component = shown->component;
      memory.stride = shown->stride;
      if (module_.type(shown->element).kind == Type::Kind::structure)
        memory.layout = module_.layout(shown->element);
    } else if (pointer_stride != 0 || !whole) {
      memory.component = shown->component;
      memory.stride = pointer_stride != 0 ? pointer_stride : round_up(shown->size, shown->alignment);
      if (!whole && shown->kind == Type::Kind::structure)
        memory.layout = module_.layout(module_.type(pointee).members[0]);
    } else if (std::none_of(shown->members.begin(), shown->members.end(), [&](Id member) {
                 return module_.type(member).kind == Type::Kind::runtime_array;
               })) {
      memory.layout = module_.layout(pointee);
    }
    memory.declared = static_cast<Access>((readable ? 1u : 0u) | (writable ? 2u : 0u));
    return memory;
  }

  Result<void> add_push(const Variable& variable, const Type& pointer) {
    if (push_ != 0) return unsupported("The entry point has two push-constant blocks; wye accepts one.");
    push_ = variable.id;
    const Id block = pointer.element;
    const Type& type = module_.type(block);
    if (type.kind != Type::Kind::structure)
      return base::invalid("The push-constant block is not a structure.");
    struct Placed {
      PushMember member;
      std::size_t index;
    };
    std::vector<Placed> placed;
    for (std::uint32_t m = 0; m < type.members.size(); ++m) placed.push_back({push_member(block, m), m});
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.member.offset < b.member.offset; });
    member_order_.resize(placed.size());
    for (Placed& one : placed) {
      member_order_[one.index] = out_.members.size();
      out_.members.push_back(std::move(one.member));
    }
    if (type.size > most_push_bytes)
      return unsupported(base::text("The push-constant block ({} bytes) exceeds the limit ({} bytes).",
                                    type.size, most_push_bytes));
    out_.push_bytes = static_cast<std::uint32_t>(type.size);
    return {};
  }

  PushMember push_member(Id block, std::uint32_t index) const {
    const Type& block_type = module_.type(block);
    const Type& type = module_.type(block_type.members[index]);
    PushMember member;
    member.name = module_.name(block, index);
    const Decorations& decorations = module_.decoration(block, index);
    const std::uint64_t size = module_.member_size(block_type.members[index], decorations);
    member.offset = decorations.offset.value_or(0);
    member.size = static_cast<std::uint32_t>(size);
    member.padded_size = round_up(size, type.padding);
    member.packed_size = round_up(size, type.alignment);
    member.element = type.component;
    member.kind = PushMember::Kind::structure;
    if (type.kind == Type::Kind::scalar)
      member.kind = PushMember::Kind::scalar;
    else
      member.layout = module_.layout(block_type.members[index], decorations);
    const auto points = [&](const Type& address) {
      member.memory = memory_of(address.element, {}, address.stride);
      member.element = ElementType::opaque;
    };
    if (type.kind == Type::Kind::pointer) {
      member.kind = PushMember::Kind::pointer;
      points(type);
    } else if (type.kind == Type::Kind::structure && type.members.size() == 2) {
      const Type& address = module_.type(type.members[0]);
      const Type& count = module_.type(type.members[1]);
      const Id id = block_type.members[index];
      if (address.kind == Type::Kind::pointer && module_.decoration(id, 0).offset.value_or(0) == 0 &&
          count.size == 8 && count.kind != Type::Kind::pointer &&
          module_.decoration(id, 1).offset.value_or(0) == 8) {
        member.kind = PushMember::Kind::span;
        points(address);
      }
    }
    return member;
  }

  void follow_writes() {
    Roots roots;
    roots.push = push_;
    const auto index_of = [&](std::uint32_t binding) {
      return static_cast<std::size_t>(std::find_if(out_.bindings.begin(), out_.bindings.end(),
                                                   [&](const Binding& b) { return b.binding == binding; }) -
                                      out_.bindings.begin());
    };
    for (const auto& [variable, binding] : variables_) roots.buffers[variable] = index_of(binding);
    for (const std::size_t member : member_order_) roots.members.push_back(out_.bindings.size() + member);
    roots.count = out_.bindings.size() + out_.members.size();
    const std::vector<Written> written = spirv::find_writes(module_, entry_->function, roots);
    for (std::size_t i = 0; i < roots.count; ++i) {
      Memory& memory =
          i < out_.bindings.size() ? out_.bindings[i].memory : out_.members[i - out_.bindings.size()].memory;
      memory.written = writes(memory.declared) ? written[i] : Written::no;
    }
  }

  const Module& module_;
  const EntryPoint* entry_ = nullptr;
  Id push_ = 0;
  std::vector<std::pair<Id, std::uint32_t>> variables_;  // of storage buffers, with their bindings
  std::vector<std::size_t> member_order_;  // index in `out_.members` of each member of the block
  Interface out_;
};

}  // namespace

Result<Interface> reflect(std::span<const std::uint32_t> words, std::string_view entry,
                          std::span<const device::Specialization> constants) {
  auto module = Module::parse({words.begin(), words.end()}, constants);
  if (!module) return std::move(module).error();
  if (!module->decoration_groups.empty())
    return unsupported("The module uses decoration groups, which wye does not read.");
  for (const device::Specialization& given : constants) {
    const auto found = module->spec_sizes.find(given.id);
    if (found == module->spec_sizes.end())
      return base::invalid(base::text("The source has no specialization constant {}.", given.id));
    if (found->second != given.size)
      return base::invalid(
          base::text("The value of specialization constant {} has {} bytes, but the constant has {} bytes in "
                     "the source.",
                     given.id, given.size, found->second));
  }
  return Reflection(*module).run(entry);
}

}  // namespace wye::kernel
