#include "kernel/reflect/spirv_module.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

namespace {

constexpr std::uint32_t magic = 0x07230203;
constexpr std::size_t header_words = 5;
constexpr std::uint64_t most_bytes = ~std::uint32_t{0};

enum class Decoration : std::uint32_t {
  spec_id = 1,
  buffer_block = 3,
  row_major = 4,
  array_stride = 6,
  matrix_stride = 7,
  built_in = 11,
  non_writable = 24,
  non_readable = 25,
  binding = 33,
  descriptor_set = 34,
  offset = 35,
};

Error broken(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

/// The literal string that begins at operand `first`; `after` becomes the operand that follows it.
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

void note(Decorations& d, std::uint32_t decoration, std::uint32_t value) {
  switch (static_cast<Decoration>(decoration)) {
    case Decoration::spec_id: d.spec_id = value; break;
    case Decoration::buffer_block: d.buffer_block = true; break;
    case Decoration::row_major: d.row_major = true; break;
    case Decoration::array_stride: d.array_stride = value; break;
    case Decoration::matrix_stride: d.matrix_stride = value; break;
    case Decoration::built_in: d.built_in = value; break;
    case Decoration::non_writable: d.non_writable = true; break;
    case Decoration::non_readable: d.non_readable = true; break;
    case Decoration::binding: d.binding = value; break;
    case Decoration::descriptor_set: d.set = value; break;
    case Decoration::offset: d.offset = value; break;
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

  Result<void> split(std::span<const std::uint32_t> words) {
    if (words.size() < header_words)
      return broken(base::text("SPIR-V of {} words is cut short: its header alone has 5.", words.size()));
    if (words[0] != magic)
      return broken(
          base::text("The first word ({:#010x}) is not that of SPIR-V ({:#010x}).", words[0], magic));
    module_.version = words[1];
    for (std::size_t at = header_words; at < words.size();) {
      const std::size_t length = words[at] >> 16;
      if (length == 0 || length > words.size() - at)
        return broken(
            base::text("The instruction at word {} (of {} words) does not end inside the module ({} words).",
                       at, length, words.size()));
      module_.instructions.push_back(
          {static_cast<Op>(words[at] & 0xffff), words.subspan(at + 1, length - 1)});
      at += length;
    }
    return {};
  }

  /// Fills the tables. Types and constants come before what uses them, so one pass in order is enough, and
  /// nothing can go in circles.
  Result<void> fill() {
    const std::vector<Instruction>& all = module_.instructions;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].op == Op::function) {
        const std::size_t first = i;
        while (i < all.size() && all[i].op != Op::function_end) ++i;
        module_.functions.push_back({all[first][1], std::span(all).subspan(first, i - first)});
        continue;
      }
      if (auto done = declare(all[i]); !done) return done;
    }
    return {};
  }

 private:
  Result<void> declare(const Instruction& in) {
    switch (in.op) {
      case Op::capability: module_.capabilities.push_back(in[0]); break;
      case Op::entry_point: {
        std::size_t after = 0;
        EntryPoint entry{in[0], in[1], string_at(in, 2, &after), {}};
        entry.interface.assign(in.operands.begin() + static_cast<std::ptrdiff_t>(std::min(after, in.size())),
                               in.operands.end());
        module_.entries.push_back(std::move(entry));
        break;
      }
      case Op::execution_mode:
      case Op::execution_mode_id: module_.modes.push_back(in); break;
      case Op::name: module_.names[in[0]] = printable(string_at(in, 1)); break;
      case Op::member_name: module_.member_names[{in[0], in[1]}] = printable(string_at(in, 2)); break;
      case Op::decorate: note(module_.decorations[in[0]], in[1], in[2]); break;
      case Op::member_decorate: note(module_.member_decorations[{in[0], in[1]}], in[2], in[3]); break;
      case Op::decoration_group:
        return Error(Errc::unsupported, "The module uses decoration groups, which wye does not read.");
      case Op::constant: module_.numbers[in[1]] = literal(in); break;
      case Op::spec_constant:
        specialize(in[1], literal(in), static_cast<std::uint32_t>(module_.type(in[0]).size));
        break;
      case Op::spec_constant_true: specialize(in[1], 1, 4); break;
      case Op::spec_constant_false: specialize(in[1], 0, 4); break;
      case Op::constant_composite:
      case Op::spec_constant_composite:
        if (in.size() > 2) module_.composites[in[1]].assign(in.operands.begin() + 2, in.operands.end());
        break;
      case Op::variable: module_.variables.push_back({in[1], in[0], static_cast<Storage>(in[2])}); break;
      default: declare_type(in); break;
    }
    return {};
  }

  /// The value of a scalar constant, which narrower types keep in a word of its own.
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
      case Op::type_bool: type.kind = Type::Kind::scalar; break;
      case Op::type_int: scalar(type, number_type(false, in[1], in[2] != 0), in[1]); break;
      case Op::type_float: scalar(type, number_type(true, in[1], true), in[1]); break;
      case Op::type_vector: many(type, Type::Kind::vector, in[1], in[2]); break;
      case Op::type_matrix: many(type, Type::Kind::matrix, in[1], in[2]); break;
      case Op::type_array: {
        const auto length = module_.numbers.find(in[2]);
        array(type, Type::Kind::array, in[1],
              length == module_.numbers.end() ? 0 : std::min(length->second, most_bytes));
        break;
      }
      case Op::type_runtime_array: array(type, Type::Kind::runtime_array, in[1], 0); break;
      case Op::type_struct: structure(type, in); break;
      case Op::type_forward_pointer: pointer(type, in[1], 0); break;
      case Op::type_pointer: pointer(type, in[1], in[2]); break;
      case Op::type_image:
      case Op::type_sampled_image: type.kind = Type::Kind::image; break;
      case Op::type_sampler: type.kind = Type::Kind::sampler; break;
      case Op::type_acceleration_structure: type.kind = Type::Kind::acceleration_structure; break;
      default: return;
    }
    module_.types[in[0]] = std::move(type);
  }

  static void pointer(Type& type, std::uint32_t storage, Id pointee) {
    type.kind = Type::Kind::pointer;
    type.storage = static_cast<Storage>(storage);
    type.element = pointee;
    type.size = type.alignment = type.padding = 8;
  }

  static void scalar(Type& type, ElementType component, std::uint32_t bits) {
    type.kind = Type::Kind::scalar;
    type.component = component;
    type.size = std::min<std::uint32_t>(bits / 8, 8);
    type.alignment = type.padding = std::max<std::uint32_t>(static_cast<std::uint32_t>(type.size), 1);
  }

  /// Vectors of scalars, and matrices of vectors without gaps (a member's MatrixStride may widen them).
  void many(Type& type, Type::Kind kind, Id element, std::uint32_t count) {
    const Type& one = module_.type(element);
    type.kind = kind;
    type.element = element;
    type.count = count;
    type.component = one.component;
    type.size = std::min(one.size * count, most_bytes);
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

Result<Module> Module::parse(std::span<const std::uint32_t> words,
                             std::span<const device::Specialization> constants) {
  Module module;
  Parser parser(module, constants);
  if (auto done = parser.split(words); !done) return std::move(done).error();
  if (auto done = parser.fill(); !done) return std::move(done).error();
  for (const device::Specialization& given : constants) {
    const auto found = module.spec_sizes.find(given.id);
    if (found == module.spec_sizes.end())
      return broken(base::text("There is no specialization constant {} in the source.", given.id));
    if (found->second != given.size)
      return broken(base::text("Specialization constant {} is given {} bytes, but has {} in the source.",
                               given.id, given.size, found->second));
  }
  return module;
}

const Type& Module::type(Id id) const { return find_or_empty(types, id); }
std::uint64_t Module::member_size(Id id, const Decorations& member) const {
  const Type& matrix = type(id);
  if (matrix.kind != Type::Kind::matrix || !member.matrix_stride) return matrix.size;
  const std::uint64_t lines = member.row_major ? type(matrix.element).count : matrix.count;
  return std::min(*member.matrix_stride * lines, most_bytes);
}
namespace {

/// Appends the numbers of a type until there are too many. Steps are counted as well: a type without numbers can nest itself
/// in others more often than anything could be walked.
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

  /// What was found; nothing if that is not all.
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

}  // namespace kernel
}  // namespace v0
}  // namespace wye
