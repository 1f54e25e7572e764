#include "kernel/reflect/spirv.hpp"

#include <algorithm>
#include <unordered_set>

#include "base/text.hpp"
#include "kernel/reflect/spirv_module.hpp"
#include "kernel/reflect/spirv_writes.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

namespace {

constexpr std::uint32_t compute = 5;      // execution model GLCompute
constexpr std::uint32_t local_size = 17;  // execution modes
constexpr std::uint32_t local_size_id = 38;
constexpr std::uint32_t workgroup_size = 25;  // built-in
constexpr std::uint32_t version_1_4 = 0x00010400;
constexpr std::uint32_t most_push_bytes = 1 << 16;
constexpr std::uint32_t bindings_end = 1024;  // drivers make tables as long as the largest number

Error unsupported(std::string sentence) { return Error(Errc::unsupported, std::move(sentence)); }

std::uint32_t round_up(std::uint64_t size, std::uint32_t alignment) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((size + alignment - 1) / alignment * alignment, ~0u));
}

struct Capability {
  std::uint32_t number;
  const char* name;
  bool known;  ///< to wye: every device has it, or it is a feature
  std::optional<Feature> feature;
};

constexpr Capability capabilities[] = {
    {0, "Matrix", true, {}},
    {1, "Shader", true, {}},
    {5347, "PhysicalStorageBufferAddresses", true, {}},
    {9, "Float16", true, Feature::float16},
    {10, "Float64", true, Feature::float64},
    {11, "Int64", true, Feature::int64},
    {12, "Int64Atomics", true, Feature::atomics_int64},
    {22, "Int16", true, Feature::int16},
    {39, "Int8", true, Feature::int8},
    {61, "GroupNonUniform", true, Feature::subgroups},
    {62, "GroupNonUniformVote", true, Feature::subgroups},
    {63, "GroupNonUniformArithmetic", true, Feature::subgroups},
    {64, "GroupNonUniformBallot", true, Feature::subgroups},
    {65, "GroupNonUniformShuffle", true, Feature::subgroups},
    {66, "GroupNonUniformShuffleRelative", true, Feature::subgroups},
    {4433, "StorageBuffer16BitAccess", true, Feature::storage16},
    {4448, "StorageBuffer8BitAccess", true, Feature::storage8},
    {6033, "AtomicFloat32AddEXT", true, Feature::atomics_float32},
    {67, "GroupNonUniformClustered", true, Feature::subgroups_clustered},
    {4435, "StoragePushConstant16", true, Feature::parameters16},
    {4450, "StoragePushConstant8", true, Feature::parameters8},
    {5345, "VulkanMemoryModel", true, Feature::memory_model},
    {5346, "VulkanMemoryModelDeviceScope", true, Feature::memory_model},
    {5, "Linkage", false, {}},
    {6, "Kernel", false, {}},
    {43, "Sampled1D", false, {}},
    {44, "Image1D", false, {}},
    {46, "SampledBuffer", false, {}},
    {47, "ImageBuffer", false, {}},
    {49, "StorageImageExtendedFormats", false, {}},
    {50, "ImageQuery", false, {}},
    {55, "StorageImageReadWithoutFormat", false, {}},
    {56, "StorageImageWriteWithoutFormat", false, {}},
    {68, "GroupNonUniformQuad", false, {}},
    {4434, "UniformAndStorageBuffer16BitAccess", false, {}},
    {4441, "VariablePointersStorageBuffer", false, {}},
    {4442, "VariablePointers", false, {}},
    {4449, "UniformAndStorageBuffer8BitAccess", false, {}},
    {4472, "RayQueryKHR", false, {}},
    {5055, "ShaderClockKHR", false, {}},
    {5302, "RuntimeDescriptorArray", false, {}},
    {5612, "AtomicFloat32MinMaxEXT", false, {}},
    {6019, "DotProduct", false, {}},
    {6034, "AtomicFloat64AddEXT", false, {}},
};

Result<Features> needed_features(const Module& module) {
  Features needs;
  for (const std::uint32_t number : module.capabilities) {
    const auto* found = std::find_if(std::begin(capabilities), std::end(capabilities),
                                     [&](const Capability& c) { return c.number == number; });
    if (found == std::end(capabilities) || !found->known)
      return unsupported(base::text("The code needs the SPIR-V capability {}{}, which wye does not offer.",
                                    number,
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
    std::string others;
    for (const EntryPoint& entry : module_.entries) {
      if (entry.model != compute) continue;
      if (entry.name == name) return entry_ = &entry, Result<void>();
      others += base::text("{}'{}'", others.empty() ? "" : ", ", printable(entry.name));
    }
    return base::invalid(
        others.empty() ? std::string("The code has no compute entry point.")
                       : base::text("The code has no compute entry point '{}' (it has {}).", name, others));
  }

  Result<void> find_workgroup() {
    std::optional<Extent3> size;
    for (const Instruction& mode : module_.modes) {
      if (mode[0] != entry_->function) continue;
      if (mode.op == Op::execution_mode && mode[1] == local_size) size = Extent3(mode[2], mode[3], mode[4]);
      if (mode.op == Op::execution_mode_id && mode[1] == local_size_id) {
        size = numbers(mode.operands.subspan(std::min<std::size_t>(2, mode.size())));
        if (!size)
          return unsupported("The workgroup size is computed from constants in a way wye does not follow.");
      }
    }
    // The built-in wins over the modes, wherever it is.
    for (const auto& [id, decorations] : module_.decorations) {
      if (decorations.built_in != workgroup_size) continue;
      const auto found = module_.composites.find(id);
      size = found == module_.composites.end() ? std::nullopt : numbers(found->second);
      if (!size)
        return unsupported("The workgroup size is computed from constants in a way wye does not follow.");
    }
    if (!size) return base::invalid("The entry point has no workgroup size.");
    if (size->x == 0 || size->y == 0 || size->z == 0)
      return base::invalid(
          base::text("The workgroup size ({} x {} x {}) has a zero in it.", size->x, size->y, size->z));
    out_.workgroup = *size;
    return {};
  }

  std::optional<Extent3> numbers(std::span<const Id> ids) const {
    std::uint64_t value[3];
    if (ids.size() != 3) return std::nullopt;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto found = module_.numbers.find(ids[i]);
      if (found == module_.numbers.end()) return std::nullopt;
      value[i] = found->second;
    }
    return Extent3(value[0], value[1], value[2]);
  }

  /// The variables of the module that belong to the entry point.
  std::vector<const Variable*> used_variables() const {
    std::unordered_set<Id> used;
    const auto entries = std::count_if(module_.entries.begin(), module_.entries.end(),
                                       [](const EntryPoint& e) { return e.model == compute; });
    const bool all = module_.version < version_1_4 && entries == 1;
    if (module_.version >= version_1_4) {
      used.insert(entry_->interface.begin(), entry_->interface.end());
    } else if (!all) {
      // Older modules do not list them: what any word of a function names counts.
      for (const Function* function : reachable(module_, entry_->function))
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
        case Storage::input:
        case Storage::output:
        case Storage::workgroup:
        case Storage::private_:
        case Storage::function: break;
        case Storage::push_constant:
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
      return unsupported(base::text("Binding {}{} of set {} is {}; wye takes storage buffers of set 0 only.",
                                    binding, base::parenthesized(name), set, what));
    };
    const bool buffer =
        variable.storage == Storage::storage_buffer ||
        (variable.storage == Storage::uniform && module_.decoration(pointer.element).buffer_block);
    switch (type.kind) {
      case Type::Kind::array:
      case Type::Kind::runtime_array: return refuse("an array of resources");
      case Type::Kind::image: return refuse("an image");
      case Type::Kind::sampler: return refuse("a sampler");
      case Type::Kind::acceleration_structure: return refuse("an acceleration structure");
      case Type::Kind::structure: break;
      default: return refuse("of a kind that wye does not know");
    }
    if (!buffer)
      return refuse(variable.storage == Storage::uniform ? "a uniform buffer"
                                                         : "of a kind that wye does not know");
    if (set != 0) return refuse("a storage buffer of another set");
    if (!decorations.binding)
      return base::invalid(
          base::text("The storage buffer{} has no binding number.", base::parenthesized(name)));
    if (binding >= bindings_end)
      return unsupported(base::text("Binding number {}{} exceeds the largest that wye takes ({}).", binding,
                                    base::parenthesized(name), bindings_end - 1));

    const Memory memory = memory_of(pointer.element, decorations);
    for (std::size_t i = 0; i < out_.bindings.size(); ++i) {
      Binding& there = out_.bindings[i];
      if (there.binding != binding) continue;
      // Two views of one buffer: what they do not agree on is not known.
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

  /// The variable's name, else that of the block's only member, else that of the block.
  std::string buffer_name(Id variable, Id block) const {
    if (std::string name = module_.name(variable); !name.empty())
      return name.substr(name.rfind('.') + 1);  // Slang's "entryPointParams.x"
    if (module_.type(block).members.size() == 1)
      if (std::string name = module_.name(block, 0); !name.empty()) return name;
    return module_.name(block);
  }

  /// What a pointer to `pointee` shows: the elements of its one member, or of itself where it is no block.
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
    if (push_ != 0) return unsupported("The entry point has two push-constant blocks; wye takes one.");
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
      return unsupported(
          base::text("The push-constant block ({} bytes) exceeds the largest that wye takes ({} bytes).",
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
    const std::vector<Written> written = find_writes(module_, entry_->function, roots);
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
  std::vector<std::size_t> member_order_;  // place among `out_.members` of each member of the block
  Interface out_;
};

}  // namespace

Result<Interface> reflect(std::span<const std::uint32_t> words, std::string_view entry,
                          std::span<const device::Specialization> constants) {
  auto module = Module::parse(words, constants);
  if (!module) return std::move(module).error();
  return Reflection(*module).run(entry);
}

namespace {

/// Calls `change` with the first operand of each `op`.
template <class Change>
void change_first_operands(std::span<std::uint32_t> words, Op op, Change change) {
  for (std::size_t at = 5; at < words.size();) {
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) return;
    if (static_cast<Op>(words[at] & 0xffff) == op && length > 1) change(words[at + 1]);
    at += length;
  }
}

}  // namespace

void forget_new_languages(std::span<std::uint32_t> words) {
  constexpr std::uint32_t newest_known = 7;  // SYCL; Slang is 11
  change_first_operands(words, Op::source, [](std::uint32_t& language) {
    if (language > newest_known) language = 0;
  });
}

void read_uniform_buffers_as_storage(std::vector<std::uint32_t>& words) {
  constexpr std::uint32_t version_1_3 = 0x00010300, uniform = 2, storage_buffer = 12;
  constexpr std::uint32_t buffer_block = 3, non_writable = 24;
  if (words.size() < 5 || words[1] < version_1_3) return;
  std::vector<std::size_t> changed;  // the words that name the storage class
  std::vector<Id> variables;
  std::size_t annotations = 0;
  for (std::size_t at = 5; at < words.size();) {
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) return;
    const auto op = static_cast<Op>(words[at] & 0xffff);
    const bool annotates = op == Op::decorate || op == Op::member_decorate;
    if (annotates && annotations == 0) annotations = at;
    if (op == Op::decorate && length > 2 && words[at + 2] == buffer_block) return;
    if (op == Op::type_pointer && length == 4 && words[at + 2] == uniform) changed.push_back(at + 2);
    if (op == Op::variable && length >= 4 && words[at + 3] == uniform) {
      changed.push_back(at + 3);
      variables.push_back(words[at + 2]);
    }
    at += length;
  }
  if (variables.empty() || annotations == 0) return;
  for (const std::size_t at : changed) words[at] = storage_buffer;
  std::vector<std::uint32_t> added;
  for (const Id variable : variables)
    added.insert(added.end(), {3u << 16 | static_cast<std::uint32_t>(Op::decorate), variable, non_writable});
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(annotations), added.begin(), added.end());
}

void ask_for_storage_buffers(std::span<std::uint32_t> words) {
  constexpr std::uint32_t both16 = 4434, storage16 = 4433, both8 = 4449, storage8 = 4448;
  change_first_operands(words, Op::capability, [](std::uint32_t& capability) {
    if (capability == both16) capability = storage16;
    if (capability == both8) capability = storage8;
  });
}

}  // namespace kernel
}  // namespace v0
}  // namespace wye
