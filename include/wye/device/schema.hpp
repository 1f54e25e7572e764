#pragma once
/// The parameters of a kernel: one ordered list that every source of the kernel must agree with.
#include <wye/base/extent.hpp>
#include <wye/base/half.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace wye::inline v0 {

enum class Access : std::uint8_t { none = 0, read = 1, write = 2, read_write = 3 };
constexpr bool reads(Access a) { return (static_cast<unsigned>(a) & 1u) != 0; }
constexpr bool writes(Access a) { return (static_cast<unsigned>(a) & 2u) != 0; }
/// Returns "read_write" and the like.
WYE_API std::string_view name(Access access) noexcept;

enum class SlotKind : std::uint8_t {
  buffer,     ///< a run of elements
  scalar,     ///< one number
  structure,  ///< the bytes of a plain struct
  address,    ///< a device address of unknown contents
};
/// Returns "buffer" and the like.
WYE_API std::string_view name(SlotKind kind) noexcept;

/// Type of an element or scalar. `opaque` stands for every other trivially copyable type.
enum class ElementType : std::uint8_t {
  opaque,
  float16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  bfloat16,
  boolean,
};
/// Returns "float32" and the like.
WYE_API std::string_view name(ElementType type) noexcept;

/// Returns the element type of a C++ type.
template <class T>
constexpr ElementType element_type() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>)
    return ElementType::float32;
  else if constexpr (std::is_same_v<U, double>)
    return ElementType::float64;
  else if constexpr (std::is_same_v<U, half>)
    return ElementType::float16;
  else if constexpr (std::is_same_v<U, bfloat16>)
    return ElementType::bfloat16;
  else if constexpr (std::is_same_v<U, bool>)
    return ElementType::boolean;
  else if constexpr (std::is_integral_v<U>) {
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1)
      return is_signed ? ElementType::int8 : ElementType::uint8;
    else if constexpr (sizeof(U) == 2)
      return is_signed ? ElementType::int16 : ElementType::uint16;
    else if constexpr (sizeof(U) == 4)
      return is_signed ? ElementType::int32 : ElementType::uint32;
    else
      return is_signed ? ElementType::int64 : ElementType::uint64;
  } else
    return ElementType::opaque;
}

/// One scalar of a plain struct.
struct SlotMember {
  ElementType element = ElementType::opaque;  ///< opaque: bytes of an unknown kind
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  friend bool operator==(const SlotMember&, const SlotMember&) = default;
};

/// One parameter.
struct Slot {
  std::string name;
  SlotKind kind = SlotKind::buffer;
  Access access = Access::read;  ///< of buffers and addresses
  ElementType element = ElementType::opaque;
  std::uint32_t size = 0;  ///< bytes of one element, of the scalar, of the struct
  /// Scalars of the struct, or of the struct of each element. Empty: only the size is known.
  std::vector<SlotMember> members = {};
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// Tells whether wye reads the members of the plain struct `T`. If it does, a source whose struct
/// has other scalars at the offsets of `T` is refused; otherwise only the size is compared.
/// Specialize it as false for a struct that structured bindings cannot decompose, such as one with
/// an unnamed struct inside.
template <class T>
inline constexpr bool reads_members = true;

/// All parameters, in order.
struct ParamSchema {
  std::vector<Slot> slots;
  friend bool operator==(const ParamSchema&, const ParamSchema&) = default;
};

/// Returns "(buffer read_write float32 x, scalar float32 s)" and the like.
WYE_API std::string to_string(const ParamSchema& schema);

}  // namespace wye
