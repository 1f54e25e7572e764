#pragma once
/// SPIR-V as a list of instructions, as far as this room reads and rewrites it.
/// Source: SPIR-V Specification 1.6, sections 2.3 and 3.
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {
namespace vulkan {
namespace spirv {

inline constexpr std::uint32_t magic = 0x07230203;
inline constexpr std::size_t header_words = 5;

/// The instructions this room looks at.
enum Op : std::uint16_t {
  op_line = 8,
  op_extension = 10,
  op_ext_inst = 12,
  op_entry_point = 15,
  op_execution_mode = 16,
  op_capability = 17,
  op_type_bool = 20,
  op_type_int = 21,
  op_type_float = 22,
  op_type_vector = 23,
  op_type_matrix = 24,
  op_type_array = 28,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_constant = 43,
  op_constant_composite = 44,
  op_spec_constant = 50,
  op_spec_constant_composite = 51,
  op_function = 54,
  op_variable = 59,
  op_load = 61,
  op_store = 62,
  op_access_chain = 65,
  op_in_bounds_access_chain = 66,
  op_decorate = 71,
  op_member_decorate = 72,
  op_decoration_group = 73,
  op_vector_extract_dynamic = 77,
  op_vector_shuffle = 79,
  op_composite_construct = 80,
  op_composite_extract = 81,
  op_composite_insert = 82,
  op_copy_object = 83,
  op_i_add = 128,
  op_i_sub = 130,
  op_i_mul = 132,
  op_s_div = 135,
  op_loop_merge = 246,
  op_selection_merge = 247,
  op_branch_conditional = 250,
  op_switch = 251,
  op_execution_mode_id = 331,
  op_group_non_uniform_first = 333,
  op_group_non_uniform_last = 366,
};

enum StorageClass : std::uint32_t {
  uniform_constant = 0,
  input = 1,
  uniform = 2,
  workgroup = 4,
  push_constant = 9,
  storage_buffer = 12,
  physical_storage_buffer = 5349,
};

enum Decoration : std::uint32_t {
  spec_id = 1,
  block = 2,
  buffer_block = 3,
  built_in = 11,
  non_writable = 24,
  binding = 33,
  descriptor_set = 34,
  offset = 35,
};

inline constexpr std::uint32_t gl_compute = 5;
inline constexpr std::uint32_t built_in_num_workgroups = 24;
inline constexpr std::uint32_t built_in_workgroup_size = 25;
inline constexpr std::uint32_t built_in_workgroup_id = 26;
inline constexpr std::uint32_t built_in_global_invocation_id = 28;
inline constexpr std::uint32_t mode_local_size = 17;
inline constexpr std::uint32_t mode_local_size_id = 38;

inline constexpr std::uint32_t capability_storage_push_constant8 = 4450;
inline constexpr std::uint32_t capability_storage_push_constant16 = 4435;
inline constexpr std::uint32_t capability_storage_buffer8 = 4448;
inline constexpr std::uint32_t capability_storage_buffer16 = 4433;

/// One instruction: its opcode and its operands, without the word that holds opcode and length.
struct Instruction {
  std::uint16_t op = 0;
  std::span<const std::uint32_t> operands;
  std::size_t at = 0;  ///< word in the module where it begins
  /// Operand `i`, or 0 where the instruction is shorter: no module can make a reader leave it.
  std::uint32_t operator[](std::size_t i) const { return i < operands.size() ? operands[i] : 0; }
};

/// A module whose header is sane and whose instructions end where the next begins.
class Module {
 public:
  /// Errors: compile_failed: not SPIR-V, cut short, of the other byte order, or newer than `newest`.
  static Result<Module> parse(std::span<const std::byte> code, std::string_view kernel, std::uint32_t newest);

  std::span<const std::uint32_t> words() const noexcept { return words_; }
  std::uint32_t version() const noexcept { return words_[1]; }

  /// Calls `f(const Instruction&)` for each instruction in order.
  template <class F>
  void each(F f) const {
    for (std::size_t at = header_words; at < words_.size();) {
      const std::size_t length = words_[at] >> 16;
      f(Instruction{static_cast<std::uint16_t>(words_[at] & 0xffff),
                    std::span(words_).subspan(at + 1, length - 1), at});
      at += length;
    }
  }

 private:
  explicit Module(std::vector<std::uint32_t> words) : words_(std::move(words)) {}
  std::vector<std::uint32_t> words_;
};

/// The string that begins at an operand, and how many operands it takes.
struct Text {
  std::string_view text;
  std::size_t words = 0;
};
Text text_at(const Instruction& instruction, std::size_t operand);

}  // namespace spirv
}  // namespace vulkan
}  // namespace v0
}  // namespace wye
