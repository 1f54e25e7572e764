#include "spirv/module.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace wye::inline v0::spirv {

namespace {

constexpr std::uint64_t most_bytes = ~std::uint32_t{0};
using spv::Decoration;

/// Returns the literal string at operand `first`. Sets `after` to the next operand.
std::string string_at(const Instruction& instruction, std::size_t first, std::size_t* after = nullptr) {
  std::string text;
  std::size_t i = first;
  for (bool ended = false; !ended && i < instruction.size(); ++i) {
    for (unsigned byte = 0; byte < 4; ++byte) {
      const char c = static_cast<char>(instruction[i] >> (8 * byte) & 0xff);
      if (c == '\0') {
        ended = true;
        break;
      }
      text.push_back(c);
    }
  }
  if (after) *after = i;
  return text;
}

void add(Decorations& d, std::uint32_t decoration, std::uint32_t value) {
  switch (static_cast<Decoration>(decoration)) {
    case Decoration::SpecId: d.spec_id = value; break;
    case Decoration::BufferBlock: d.buffer_block = true; break;
    case Decoration::RowMajor: d.row_major = true; break;
    case Decoration::ArrayStride: d.array_stride = value; break;
    case Decoration::MatrixStride: d.matrix_stride = value; break;
    case Decoration::BuiltIn: d.built_in = value; break;
    case Decoration::NonWritable: d.non_writable = true; break;
    case Decoration::NonReadable: d.non_readable = true; break;
    case Decoration::Binding: d.binding = value; break;
    case Decoration::DescriptorSet: d.set = value; break;
    case Decoration::Offset: d.offset = value; break;
    default: break;
  }
}

ElementType number_type(bool floating, std::uint32_t width, bool is_signed) {
  switch (width) {
    case 8: return floating ? ElementType::opaque : is_signed ? ElementType::int8 : ElementType::uint8;
    case 16: return floating ? ElementType::float16 : is_signed ? ElementType::int16 : ElementType::uint16;
    case 32: return floating ? ElementType::float32 : is_signed ? ElementType::int32 : ElementType::uint32;
    case 64: return floating ? ElementType::float64 : is_signed ? ElementType::int64 : ElementType::uint64;
    default: return ElementType::opaque;
  }
}

class Parser {
 public:
  Parser(Module& module, std::span<const device::Specialization> constants)
      : module_(module), constants_(constants) {}

  Result<void> split() {
    const std::span<const std::uint32_t> words = module_.words;
    if (words.size() < header_words)
      return base::invalid(
          base::text("The SPIR-V module ({} words) is shorter than its header (5 words).", words.size()));
    if (words[0] != spv::MagicNumber)
      return base::invalid(base::text("The first word ({:#010x}) is not SPIR-V's magic number ({:#010x}).",
                                      words[0], spv::MagicNumber));
    module_.version = words[1];
    const std::size_t end =
        each_instruction(words, [this](Op op, std::span<const std::uint32_t> instruction) {
          module_.instructions.push_back({op, instruction.subspan(1)});
        });
    if (end != words.size())
      return base::invalid(
          base::text("The instruction at word {} ({} words) exceeds the end of the module ({} words).", end,
                     words[end] >> 16, words.size()));
    return {};
  }

  /// Fills the tables. A module declares types and constants before their uses, so one pass in
  /// order is enough.
  void fill() {
    const std::vector<Instruction>& all = module_.instructions;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].op != Op::OpFunction) {
        declare(all[i]);
        continue;
      }
      const std::size_t first = i;
      while (i < all.size() && all[i].op != Op::OpFunctionEnd) ++i;
      module_.functions.push_back({all[first][1], std::span(all).subspan(first, i - first)});
    }
  }

 private:
  void declare(const Instruction& in) {
    switch (in.op) {
      case Op::OpCapability: module_.capabilities.push_back(static_cast<spv::Capability>(in[0])); break;
      case Op::OpExtension: module_.extensions.push_back(string_at(in, 0)); break;
      case Op::OpEntryPoint: {
        std::size_t after = 0;
        EntryPoint entry{static_cast<spv::ExecutionModel>(in[0]), in[1], string_at(in, 2, &after), {}};
        entry.interface.assign(in.operands.begin() + static_cast<std::ptrdiff_t>(std::min(after, in.size())),
                               in.operands.end());
        module_.entries.push_back(std::move(entry));
        break;
      }
      case Op::OpExecutionMode:
      case Op::OpExecutionModeId: module_.modes.push_back(in); break;
      case Op::OpName: module_.names[in[0]] = printable(string_at(in, 1)); break;
      case Op::OpMemberName: module_.member_names[{in[0], in[1]}] = printable(string_at(in, 2)); break;
      case Op::OpDecorate: add(module_.decorations[in[0]], in[1], in[2]); break;
      case Op::OpMemberDecorate: add(module_.member_decorations[{in[0], in[1]}], in[2], in[3]); break;
      case Op::OpDecorationGroup: module_.decoration_groups.push_back(in[0]); break;
      case Op::OpConstant: module_.numbers[in[1]] = literal(in); break;
      case Op::OpSpecConstant:
        specialize(in[1], literal(in), static_cast<std::uint32_t>(module_.type(in[0]).size));
        break;
      case Op::OpSpecConstantTrue: specialize(in[1], 1, 4); break;
      case Op::OpSpecConstantFalse: specialize(in[1], 0, 4); break;
      case Op::OpConstantComposite:
      case Op::OpSpecConstantComposite:
        if (in.size() > 2) module_.composites[in[1]].assign(in.operands.begin() + 2, in.operands.end());
        break;
      case Op::OpVariable:
        module_.variables.push_back({in[1], in[0], static_cast<StorageClass>(in[2])});
        break;
      default: declare_type(in); break;
    }
  }

  /// Returns the value of a scalar constant. Types narrower than 32 bits use one word.
  static std::uint64_t literal(const Instruction& in) { return in[2] | std::uint64_t{in[3]} << 32; }

  void specialize(Id id, std::uint64_t value, std::uint32_t size) {
    if (const auto spec_id = module_.decoration(id).spec_id) {
      module_.spec_sizes[*spec_id] = size;
      for (const device::Specialization& given : constants_)
        if (given.id == *spec_id) value = given.bits;
    }
    module_.numbers[id] = value;
  }

  void declare_type(const Instruction& in) {
    Type type;
    const Decorations& decorations = module_.decoration(in[0]);
    type.stride = decorations.array_stride.value_or(0);
    switch (in.op) {
      case Op::OpTypeBool:
        type.kind = Type::Kind::scalar;
        type.packed_size = 4;
        break;
      case Op::OpTypeInt: scalar(type, number_type(false, in[1], in[2] != 0), in[1]); break;
      case Op::OpTypeFloat: scalar(type, number_type(true, in[1], true), in[1]); break;
      case Op::OpTypeVector: composite(type, Type::Kind::vector, in[1], in[2]); break;
      case Op::OpTypeMatrix: composite(type, Type::Kind::matrix, in[1], in[2]); break;
      case Op::OpTypeArray: {
        const auto length = module_.numbers.find(in[2]);
        array(type, Type::Kind::array, in[1],
              length == module_.numbers.end() ? 0 : std::min(length->second, most_bytes));
        break;
      }
      case Op::OpTypeRuntimeArray: array(type, Type::Kind::runtime_array, in[1], 0); break;
      case Op::OpTypeStruct: structure(type, in); break;
      case Op::OpTypeForwardPointer: pointer(type, in[1], 0); break;
      case Op::OpTypePointer: pointer(type, in[1], in[2]); break;
      case Op::OpTypeImage:
      case Op::OpTypeSampledImage: type.kind = Type::Kind::image; break;
      case Op::OpTypeSampler: type.kind = Type::Kind::sampler; break;
      case Op::OpTypeAccelerationStructureKHR: type.kind = Type::Kind::acceleration_structure; break;
      default: return;
    }
    module_.types[in[0]] = std::move(type);
  }

  static void pointer(Type& type, std::uint32_t storage, Id pointee) {
    type.kind = Type::Kind::pointer;
    type.storage = static_cast<StorageClass>(storage);
    type.element = pointee;
    type.size = type.packed_size = type.alignment = type.padding = 8;
  }

  static void scalar(Type& type, ElementType component, std::uint32_t bits) {
    type.kind = Type::Kind::scalar;
    type.component = component;
    type.size = type.packed_size = std::min<std::uint32_t>(bits / 8, 8);
    type.alignment = type.padding = std::max<std::uint32_t>(static_cast<std::uint32_t>(type.size), 1);
  }

  /// Declares a vector of scalars, or a matrix of vectors without gaps (a member's MatrixStride may
  /// widen it).
  void composite(Type& type, Type::Kind kind, Id element, std::uint32_t count) {
    const Type& one = module_.type(element);
    type.kind = kind;
    type.element = element;
    type.count = count;
    type.component = one.component;
    type.count = count;
    type.size = std::min(one.size * count, most_bytes);
    type.packed_size = std::min(one.packed_size * count, most_bytes);
    type.alignment = one.alignment;
    type.padding = kind == Type::Kind::matrix ? one.padding : one.alignment * (count == 2 ? 2 : 4);
  }

  void array(Type& type, Type::Kind kind, Id element, std::uint64_t count) {
    const Type& one = module_.type(element);
    type.kind = kind;
    type.element = element;
    type.count = static_cast<std::uint32_t>(count);
    type.component = one.component;
    type.size = std::min((type.stride != 0 ? type.stride : one.size) * count, most_bytes);
    type.packed_size = std::min(one.packed_size * count, most_bytes);
    type.alignment = one.alignment;
    type.padding = one.padding;
  }

  void structure(Type& type, const Instruction& in) {
    type.kind = Type::Kind::structure;
    if (in.size() > 1) type.members.assign(in.operands.begin() + 1, in.operands.end());
    for (std::uint32_t m = 0; m < type.members.size(); ++m) {
      const Type& member = module_.type(type.members[m]);
      const Decorations& decorations = module_.decoration(in[0], m);
      const std::uint64_t size = module_.member_size(type.members[m], decorations);
      type.size = std::min(std::max(type.size, decorations.offset.value_or(0) + size), most_bytes);
      type.packed_size = std::min(type.packed_size + member.packed_size, most_bytes);
      type.alignment = std::max(type.alignment, member.alignment);
      type.padding = std::max(type.padding, member.padding);
    }
  }

  Module& module_;
  std::span<const device::Specialization> constants_;
};

template <class Map, class Key>
const typename Map::mapped_type& find_or_empty(const Map& map, const Key& key) {
  static const typename Map::mapped_type empty{};
  const auto found = map.find(key);
  return found == map.end() ? empty : found->second;
}

}  // namespace

std::string printable(std::string_view name) {
  std::string text(name.substr(0, 64));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

Result<Module> Module::parse(Words words, std::span<const device::Specialization> constants) {
  Module module;
  module.words = std::move(words);
  Parser parser(module, constants);
  if (auto done = parser.split(); !done) return std::move(done).error();
  parser.fill();
  return module;
}

const EntryPoint* Module::compute_entry(std::string_view name) const {
  for (const EntryPoint& entry : entries)
    if (entry.model == spv::ExecutionModel::GLCompute && entry.name == name) return &entry;
  return nullptr;
}

std::optional<Extent3> Module::extent(std::span<const Id> constants) const {
  std::uint64_t value[3];
  if (constants.size() != 3) return std::nullopt;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto found = numbers.find(constants[i]);
    if (found == numbers.end()) return std::nullopt;
    value[i] = found->second;
  }
  return Extent3(value[0], value[1], value[2]);
}

WorkgroupSize Module::workgroup(const EntryPoint& entry) const {
  for (const auto& [id, declared] : decorations)
    if (declared.built_in == static_cast<std::uint32_t>(spv::BuiltIn::WorkgroupSize))
      return {true, extent(find_or_empty(composites, id))};
  WorkgroupSize found;
  for (const Instruction& mode : modes) {
    if (mode[0] != entry.function) continue;
    const auto kind = static_cast<spv::ExecutionMode>(mode[1]);
    if (mode.op == Op::OpExecutionMode && kind == spv::ExecutionMode::LocalSize)
      found = {true, Extent3(mode[2], mode[3], mode[4])};
    if (mode.op == Op::OpExecutionModeId && kind == spv::ExecutionMode::LocalSizeId)
      found = {true, extent(mode.operands.subspan(std::min<std::size_t>(2, mode.size())))};
  }
  return found;
}

const Type& Module::type(Id id) const { return find_or_empty(types, id); }
std::uint64_t Module::member_size(Id id, const Decorations& member) const {
  const Type& matrix = type(id);
  if (matrix.kind != Type::Kind::matrix || !member.matrix_stride) return matrix.size;
  const std::uint64_t lines = member.row_major ? type(matrix.element).count : matrix.count;
  return std::min(*member.matrix_stride * lines, most_bytes);
}
namespace {

/// Appends the numbers of a type until there are too many. Counts steps too, because a type without
/// numbers may contain more nested types than can be visited.
class LayoutWalk {
 public:
  explicit LayoutWalk(const Module& module) : module_(module) {}

  void walk(Id id, const Decorations& member, std::uint64_t offset) {
    if (!more()) return;
    ++steps_;
    const Type& type = module_.type(id);
    switch (type.kind) {
      case Type::Kind::scalar: add(type.component, offset, type.size); break;
      case Type::Kind::pointer: add(ElementType::uint64, offset, type.size); break;
      case Type::Kind::vector: repeat(type, member, offset, module_.type(type.element).size); break;
      case Type::Kind::array:
        repeat(type, member, offset, type.stride != 0 ? type.stride : module_.type(type.element).size);
        break;
      case Type::Kind::matrix: {
        const Type& column = module_.type(type.element);
        const std::uint64_t number = module_.type(column.element).size;
        const std::uint64_t stride = member.matrix_stride.value_or(static_cast<std::uint32_t>(column.size));
        for (std::uint64_t c = 0; c < type.count && more(); ++c)
          for (std::uint64_t r = 0; r < column.count && more(); ++r)
            walk(column.element, {},
                 offset + (member.row_major ? r * stride + c * number : c * stride + r * number));
        break;
      }
      case Type::Kind::structure:
        for (std::uint32_t m = 0; m < type.members.size() && more(); ++m) {
          const Decorations& decorations = module_.decoration(id, m);
          walk(type.members[m], decorations, offset + decorations.offset.value_or(0));
        }
        break;
      default: break;
    }
  }

  /// Returns the numbers, or nothing if there are too many.
  std::vector<SlotMember> found() && {
    if (!more()) found_.clear();
    return std::move(found_);
  }

 private:
  static constexpr std::size_t most_steps = 4 * most_numbers;

  bool more() const { return found_.size() <= most_numbers && steps_ <= most_steps; }
  void add(ElementType element, std::uint64_t offset, std::uint64_t size) {
    found_.push_back({element, static_cast<std::uint32_t>(std::min(offset, most_bytes)),
                      static_cast<std::uint32_t>(size)});
  }
  void repeat(const Type& type, const Decorations& member, std::uint64_t offset, std::uint64_t stride) {
    for (std::uint64_t i = 0; i < type.count && more(); ++i) {
      ++steps_;
      walk(type.element, member, offset + i * stride);
    }
  }

  const Module& module_;
  std::vector<SlotMember> found_;
  std::size_t steps_ = 0;
};

}  // namespace

std::vector<SlotMember> Module::layout(Id id, const Decorations& member) const {
  LayoutWalk walk(*this);
  walk.walk(id, member, 0);
  return std::move(walk).found();
}

const Decorations& Module::decoration(Id id) const { return find_or_empty(decorations, id); }
const Decorations& Module::decoration(Id id, std::uint32_t member) const {
  return find_or_empty(member_decorations, std::pair(id, member));
}
std::string Module::name(Id id) const { return find_or_empty(names, id); }
std::string Module::name(Id id, std::uint32_t member) const {
  return find_or_empty(member_names, std::pair(id, member));
}

}  // namespace wye::spirv
