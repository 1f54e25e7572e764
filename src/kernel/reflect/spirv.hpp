#pragma once
/// Reading SPIR-V: what a module expects of whoever runs it.
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/schema.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/artefact.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// Whether code writes something, as far as it can be followed.
enum class Written : std::uint8_t { no, yes, unknown };

/// Memory a shader sees, bound as a buffer or through an address.
struct Memory {
  Access declared = Access::read_write;  ///< what `readonly` and `writeonly` leave
  Written written = Written::no;
  ElementType component =
      ElementType::opaque;   ///< the numbers its elements are made of; opaque: several, or unknown
  std::uint32_t stride = 0;  ///< bytes from one element to the next; 0: unknown
  /// The numbers of one element that is a struct; with a `stride` of 0, those of a block that ends where they do.
  std::vector<SlotMember> layout = {};
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// A storage buffer of set 0.
struct Binding {
  std::uint32_t binding = 0;
  std::string name;
  Memory memory;
};

/// A member of the push-constant block.
struct PushMember {
  enum class Kind : std::uint8_t {
    scalar,     ///< a number of type `element`
    structure,  ///< anything else without an address that can be followed
    pointer,    ///< the address of `memory`
    span,       ///< the address of `memory` and, 8 bytes on, how many elements it has
    bytes,      ///< any of these in so many bytes; a number of type `element` where that is not opaque
  };
  std::string name;
  Kind kind = Kind::scalar;
  ElementType element = ElementType::opaque;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;         ///< bytes that mean something
  std::uint32_t padded_size = 0;  ///< `size` up to the alignment that GLSL gives it
  std::uint32_t packed_size = 0;  ///< `size` up to the alignment that C++ gives it
  Memory memory;
  std::vector<SlotMember> layout = {};  ///< the numbers of a `structure`, from its begin
};

/// What one entry point of a module expects.
struct Interface {
  std::vector<Binding> bindings;  ///< in order of their numbers
  /// Of the push-constant block, in order of their offsets; in CUDA the parameters of the function.
  std::vector<PushMember> members;
  std::uint32_t push_bytes = 0;  ///< end of the block
  Extent3 workgroup{1};
  Features needs = {};
};

/// Reads the interface of the compute entry point `entry`, with `constants` in place of the defaults of its
/// specialization constants. Does not prove that the module is valid (`validate` does), but reads nothing
/// outside `words`, whatever they are.
/// Errors: invalid_argument (cut short, no such entry point, no such constant); unsupported, with names and
///         numbers: resources other than storage buffers of set 0, capabilities wye does not know.
/// Source: the SPIR-V specification, version 1.6.
Result<Interface> reflect(std::span<const std::uint32_t> words, std::string_view entry,
                          std::span<const device::Specialization> constants);

/// Proves that the module is valid SPIR-V for Vulkan 1.2, and gives what a device must have for that:
/// scalar_layout where its structs ask for it. Without effect in a build without SPIRV-Tools (WYE_GLSL off).
/// Errors: invalid_argument, with what is wrong and where.
Result<Features> validate(std::span<const std::uint32_t> words);

/// Makes the source language of every OpSource "unknown" where it is newer than the tools and drivers of
/// 2023, which refuse it. It is a remark for debuggers; nothing else changes.
void forget_new_languages(std::span<std::uint32_t> words);

/// Makes a module that asks for 8- and 16-bit numbers in storage and uniform buffers ask for those in storage buffers
/// only, which is all that wye binds, and more devices have it. Slang always asks for both.
void ask_for_storage_buffers(std::span<std::uint32_t> words);

/// Makes the uniform buffers of a module storage buffers that it does not write. Every layout of a uniform buffer is one of a
/// storage buffer, which may be larger. SPIR-V before 1.3 keeps its uniform buffers, and so does a module that is not valid.
void read_uniform_buffers_as_storage(std::vector<std::uint32_t>& words);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
