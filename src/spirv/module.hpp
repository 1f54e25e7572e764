#pragma once
/// A SPIR-V module as tables: instructions, names, decorations, types, constants, functions.
/// Source: the SPIR-V specification, version 1.6, sections 2.3 and 3.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/artefact.hpp"

namespace wye::inline v0::spirv {

using spv::Op;
using spv::StorageClass;
using Id = std::uint32_t;
using Words = std::vector<std::uint32_t>;

inline constexpr std::size_t header_words = 5;

/// SPV_KHR_cooperative_matrix, which older headers of SPIR-V lack.
inline constexpr auto cooperative_matrix = static_cast<spv::Capability>(6022);

/// Calls `f(Op, words of the instruction)` for each instruction in order. Returns the word after
/// the last instruction that ends inside the module: `words.size()` unless the module is truncated.
template <class Word, class F>
std::size_t each_instruction(std::span<Word> words, F f) {
  std::size_t at = header_words;
  while (at < words.size()) {
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) break;
    f(static_cast<Op>(words[at] & 0xffff), words.subspan(at, length));
    at += length;
  }
  return at;
}

/// One instruction. Operands beyond its end read as 0, which is not a valid id.
struct Instruction {
  Op op{};
  std::span<const std::uint32_t> operands;
  std::uint32_t operator[](std::size_t i) const { return i < operands.size() ? operands[i] : 0; }
  std::size_t size() const { return operands.size(); }
  /// Returns the operands and the word before them, which holds length and opcode.
  std::span<const std::uint32_t> words() const { return {operands.data() - 1, operands.size() + 1}; }
};

/// The decorations of an id, or of one member of a structure.
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
  std::uint64_t size = 0;         ///< bytes without trailing padding, at most 2^32 - 1; 0: unknown
  std::uint64_t packed_size = 0;  ///< bytes without gaps, as in shared memory; at most 2^32 - 1
  std::uint32_t alignment = 1;    ///< of its largest number, as in C++
  std::uint32_t padding = 1;      ///< its alignment in std430
  ElementType component = ElementType::opaque;
  Id element = 0;  ///< of vectors, matrices, arrays; the pointee of a pointer
  std::uint32_t count = 0;
  std::uint32_t stride = 0;  ///< of arrays; of pointers that are indexed
  std::vector<Id> members;
  StorageClass storage{};  ///< of pointers
};

struct EntryPoint {
  spv::ExecutionModel model{};
  Id function = 0;
  std::string name;
  std::vector<Id> interface;
};

struct Variable {
  Id id = 0;
  Id type = 0;  ///< of the pointer to it
  StorageClass storage{};
};

struct Function {
  Id id = 0;
  std::span<const Instruction> body;
};

/// The most numbers of a struct whose offsets are compared. Larger structs are compared by size.
inline constexpr std::size_t most_numbers = 1024;

/// The workgroup size that a module declares.
struct WorkgroupSize {
  bool is_declared = false;
  std::optional<Extent3> size = {};  ///< empty if it is not declared, or computed from constants
};

/// Threads: thread-compatible.
struct Module {
  Words words;
  std::uint32_t version = 0;  ///< 0x00010500 is 1.5
  std::vector<Instruction> instructions;
  std::vector<spv::Capability> capabilities;
  std::vector<std::string> extensions;
  std::vector<EntryPoint> entries;
  std::vector<Instruction> modes;
  std::unordered_map<Id, std::string> names;
  std::map<std::pair<Id, std::uint32_t>, std::string> member_names;
  std::unordered_map<Id, Decorations> decorations;
  std::map<std::pair<Id, std::uint32_t>, Decorations> member_decorations;
  std::vector<Id> decoration_groups;  ///< not applied to their targets
  std::unordered_map<Id, Type> types;
  std::unordered_map<Id, std::uint64_t> numbers;       ///< scalar constants, specialized
  std::unordered_map<Id, std::vector<Id>> composites;  ///< constants
  std::map<std::uint32_t, std::uint32_t> spec_sizes;   ///< of each specialization constant, by its SpecId
  std::vector<Variable> variables;                     ///< of the module
  std::vector<Function> functions;

  Module() = default;
  Module(Module&&) = default;
  Module(const Module&) = delete;  // its instructions are views of its words

  /// Splits `words` into tables, with `constants` instead of defaults. Never reads outside `words`.
  /// Errors: invalid_argument if `words` is not SPIR-V or is cut short.
  static Result<Module> parse(Words words, std::span<const device::Specialization> constants = {});

  /// Returns the compute entry point `name`, or null.
  const EntryPoint* compute_entry(std::string_view name) const;
  /// Returns the workgroup size of `entry`. The built-in WorkgroupSize overrides the execution
  /// modes.
  WorkgroupSize workgroup(const EntryPoint& entry) const;
  const Type& type(Id id) const;
  /// Returns the type that a variable's pointer points to.
  const Type& pointee(const Variable& variable) const { return type(type(variable.type).element); }
  /// Returns the bytes of a structure's member of type `id`: its decorations set the width of a
  /// matrix.
  std::uint64_t member_size(Id id, const Decorations& member) const;
  /// Returns the numbers of a value of type `id`, in order of its members; empty if there are over
  /// `most_numbers`.
  std::vector<SlotMember> layout(Id id, const Decorations& member = {}) const;
  const Decorations& decoration(Id id) const;
  const Decorations& decoration(Id id, std::uint32_t member) const;
  /// Returns the printable name of an id or a member; empty if it has none.
  std::string name(Id id) const;
  std::string name(Id id, std::uint32_t member) const;

 private:
  std::optional<Extent3> extent(std::span<const Id> constants) const;
};

/// Returns a name for an error message: shortened, without control characters.
std::string printable(std::string_view name);

/// Appends an instruction.
inline void append(Words& words, Op op, std::initializer_list<std::uint32_t> operands) {
  words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | static_cast<std::uint32_t>(op));
  words.insert(words.end(), operands);
}

}  // namespace wye::spirv
