#pragma once
/// A SPIR-V module as tables: instructions, names, decorations, types, constants, functions.
#include <wye/base/result.hpp>
#include <wye/device/schema.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/artefact.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

using Id = std::uint32_t;

/// The instructions that are looked at, with their numbers in the SPIR-V specification.
enum class Op : std::uint16_t {
  source = 3,
  name = 5,
  member_name = 6,
  entry_point = 15,
  execution_mode = 16,
  capability = 17,
  type_bool = 20,
  type_int = 21,
  type_float = 22,
  type_vector = 23,
  type_matrix = 24,
  type_image = 25,
  type_sampler = 26,
  type_sampled_image = 27,
  type_array = 28,
  type_runtime_array = 29,
  type_struct = 30,
  type_pointer = 32,
  type_forward_pointer = 39,
  constant = 43,
  constant_composite = 44,
  spec_constant_true = 48,
  spec_constant_false = 49,
  spec_constant = 50,
  spec_constant_composite = 51,
  function = 54,
  function_parameter = 55,
  function_end = 56,
  function_call = 57,
  variable = 59,
  load = 61,
  store = 62,
  copy_memory = 63,
  copy_memory_sized = 64,
  access_chain = 65,
  in_bounds_access_chain = 66,
  ptr_access_chain = 67,
  in_bounds_ptr_access_chain = 70,
  decorate = 71,
  member_decorate = 72,
  decoration_group = 73,
  composite_construct = 80,
  composite_extract = 81,
  composite_insert = 82,
  copy_object = 83,
  u_convert = 113,
  convert_ptr_to_u = 117,
  convert_u_to_ptr = 120,
  bitcast = 124,
  i_add = 128,
  i_sub = 130,
  select = 169,
  atomic_load = 227,
  atomic_store = 228,
  atomic_exchange = 229,
  atomic_xor = 242,
  phi = 245,
  return_value = 254,
  atomic_flag_test_and_set = 318,
  atomic_flag_clear = 319,
  execution_mode_id = 331,
  copy_logical = 400,
  type_acceleration_structure = 5341,
  atomic_f_min = 5614,
  atomic_f_max = 5615,
  atomic_f_add = 6035,
};

/// Storage classes.
enum class Storage : std::uint32_t {
  uniform_constant = 0,
  input = 1,
  uniform = 2,
  output = 3,
  workgroup = 4,
  private_ = 6,
  function = 7,
  push_constant = 9,
  storage_buffer = 12,
  physical_storage_buffer = 5349,
};

/// One instruction. Operands that are not there read as 0, which is no id.
struct Instruction {
  Op op{};
  std::span<const std::uint32_t> operands;
  std::uint32_t operator[](std::size_t i) const { return i < operands.size() ? operands[i] : 0; }
  std::size_t size() const { return operands.size(); }
};

/// What decorations say of an id, or of one member of it.
struct Decorations {
  std::optional<std::uint32_t> spec_id, array_stride, matrix_stride, built_in, binding, set, offset;
  bool row_major = false;
  bool buffer_block = false;
  bool non_writable = false;
  bool non_readable = false;
};

struct Type {
  enum class Kind : std::uint8_t {
    other,
    scalar,
    vector,
    matrix,
    array,
    runtime_array,
    structure,
    pointer,
    image,
    sampler,
    acceleration_structure,
  };
  Kind kind = Kind::other;
  std::uint64_t size = 0;       ///< bytes that mean something, at most 2^32 - 1; 0: unknown
  std::uint32_t alignment = 1;  ///< of its largest number: what C++ gives it
  std::uint32_t padding = 1;    ///< what std430 aligns it to
  ElementType component = ElementType::opaque;
  Id element = 0;  ///< of vectors, matrices, arrays; what a pointer points to
  std::uint32_t count = 0;
  std::uint32_t stride = 0;  ///< of arrays; of pointers that are indexed
  std::vector<Id> members;
  Storage storage{};  ///< of pointers
};

struct EntryPoint {
  std::uint32_t model = 0;
  Id function = 0;
  std::string name;
  std::vector<Id> interface;
};

struct Variable {
  Id id = 0;
  Id type = 0;  ///< of the pointer to it
  Storage storage{};
};

struct Function {
  Id id = 0;
  std::span<const Instruction> body;
};

/// Numbers of a struct whose offsets are compared; of a larger one, the size.
inline constexpr std::size_t most_numbers = 1024;

struct Module {
  std::uint32_t version = 0;  ///< 0x00010500 is 1.5
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> capabilities;
  std::vector<EntryPoint> entries;
  std::vector<Instruction> modes;
  std::unordered_map<Id, std::string> names;
  std::map<std::pair<Id, std::uint32_t>, std::string> member_names;
  std::unordered_map<Id, Decorations> decorations;
  std::map<std::pair<Id, std::uint32_t>, Decorations> member_decorations;
  std::unordered_map<Id, Type> types;
  std::unordered_map<Id, std::uint64_t> numbers;       ///< scalar constants, specialized
  std::unordered_map<Id, std::vector<Id>> composites;  ///< constants
  std::map<std::uint32_t, std::uint32_t> spec_sizes;   ///< of each specialization constant, by its SpecId
  std::vector<Variable> variables;                     ///< of the module
  std::vector<Function> functions;

  /// Splits `words` into tables, with `constants` in place of defaults.
  /// Errors: invalid_argument.
  static Result<Module> parse(std::span<const std::uint32_t> words,
                              std::span<const device::Specialization> constants);

  const Type& type(Id id) const;
  /// Bytes of a structure's member of type `id`: matrices are as wide as its decorations make them.
  std::uint64_t member_size(Id id, const Decorations& member) const;
  /// The numbers of a value of type `id`, in order of its members; empty if there are over `most_numbers`.
  std::vector<SlotMember> layout(Id id, const Decorations& member = {}) const;
  const Decorations& decoration(Id id) const;
  const Decorations& decoration(Id id, std::uint32_t member) const;
  /// Printable; empty where there is none.
  std::string name(Id id) const;
  std::string name(Id id, std::uint32_t member) const;
};

/// A name of a module, for people: short, and without what would break a line.
std::string printable(std::string_view name);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
