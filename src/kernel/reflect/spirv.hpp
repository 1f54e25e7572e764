#pragma once
/// Reads the interface of a shader: its parameters, its workgroup and the features that it
/// requires.
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
#include "spirv/written.hpp"

namespace wye::inline v0::kernel {

using spirv::Written;

/// Memory that a shader accesses through a bound buffer or an address.
struct Memory {
  Access declared = Access::read_write;  ///< without the accesses that `readonly` and `writeonly` exclude
  Written written = Written::no;
  ElementType component =
      ElementType::opaque;   ///< the type of number of its elements; opaque: several types, or unknown
  std::uint32_t stride = 0;  ///< bytes from one element to the next; 0: unknown
  /// The numbers of one struct element. If `stride` is 0, the numbers of the block, which ends
  /// after them.
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
    structure,  ///< any other type without a known address
    pointer,    ///< the address of `memory`
    span,       ///< the address of `memory` and, 8 bytes on, the number of its elements
    bytes,      ///< `size` bytes of any kind; a number if `element` is not opaque
  };
  std::string name;
  Kind kind = Kind::scalar;
  ElementType element = ElementType::opaque;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;         ///< without padding at its end
  std::uint32_t padded_size = 0;  ///< `size` up to the alignment that GLSL gives it
  std::uint32_t packed_size = 0;  ///< `size` up to the alignment that C++ gives it
  Memory memory;
  std::vector<SlotMember> layout = {};  ///< the numbers of a `structure`
};

/// The interface of one entry point of a module.
struct Interface {
  std::vector<Binding> bindings;  ///< in order of their numbers
  /// Of the push-constant block, in order of their offsets; in CUDA the parameters of the function.
  std::vector<PushMember> members;
  std::uint32_t push_bytes = 0;  ///< size of the block
  Extent3 workgroup{1};
  Features needs = {};
};

/// Reads the interface of the compute entry point `entry`; `constants` replace the defaults of its
/// specialization constants. Does not check that the module is valid (`validate` does), but reads
/// nothing outside `words`.
/// Errors: invalid_argument (truncated, no such entry point, no such constant); unsupported, with
///         names and numbers (resources other than storage buffers of set 0, capabilities that wye
///         does not support).
Result<Interface> reflect(std::span<const std::uint32_t> words, std::string_view entry,
                          std::span<const device::Specialization> constants);

/// Checks that the module is valid SPIR-V for Vulkan 1.2, and returns the features that a device
/// needs for it: scalar_layout if its structs require it. Checks nothing in a build without
/// SPIRV-Tools (WYE_GLSL off).
/// Errors: invalid_argument, with the validator's reason and the place.
Result<Features> validate(std::span<const std::uint32_t> words);

}  // namespace wye::kernel
