#pragma once
/// Operands: the type-erased arguments of a call. Hosts pass host memory, buffers, arrays, scratch
/// memory and values.
#include <wye/base/bytes.hpp>
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/schema.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye::inline v0 {

namespace device {

/// An object that an operand keeps alive: a buffer of a backend, an array of the data room, the
/// bytes of a large struct.
class WYE_API Retained {
 public:
  virtual ~Retained();
};

}  // namespace device

namespace detail {

/// One argument of a call, type-erased.
/// Threads: thread-compatible. Host memory is borrowed until the job has completed.
class Operand {
 public:
  enum class Kind : std::uint8_t {
    none,
    host,     ///< `count` elements at `data` in memory of the application
    buffer,   ///< `count` elements of the device buffer `object`, from `offset`
    array,    ///< `object` is an array of the runtime
    scratch,  ///< memory that is freed when the job has completed, with the number `id`
    value,    ///< bytes: a scalar or a struct
    address,  ///< the device address of `object`, with `access` to all of it
  };

  Kind kind = Kind::none;
  Access access = Access::none;
  ElementType element = ElementType::opaque;
  std::uint32_t size = 0;    ///< bytes of one element, or of the value
  std::uint64_t count = 0;   ///< elements
  std::uint64_t offset = 0;  ///< first element, of buffers, arrays and scratch
  union {
    void* data = nullptr;  ///< host memory; never written where `access` is read
    std::uint64_t id;      ///< scratch
  };
  std::shared_ptr<device::Retained> object;
  std::array<std::byte, 16> inline_value{};

  /// Returns the size of all elements; 2^64 - 1 on overflow.
  Bytes bytes() const {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    return Bytes{size != 0 && count > most / size ? most : count * size};
  }
  /// Returns elements [first, first + n) of this operand. A slice beyond the end has a count of
  /// 2^64 - 1, and a job that gets it returns `invalid_argument`.
  Operand slice(std::uint64_t first, std::uint64_t n) const {
    Operand part = *this;
    if (first > count || n > count - first) {
      part.count = std::numeric_limits<std::uint64_t>::max();
      return part;
    }
    if (kind == Kind::host)
      part.data = static_cast<std::byte*>(data) + first * size;
    else
      part.offset += first;
    part.count = n;
    return part;
  }
  /// Returns the bytes of a value.
  WYE_API std::span<const std::byte> value() const noexcept;

  template <class T>
  static Operand host_span(std::span<T> span, Access access) {
    static_assert(std::is_trivially_copyable_v<std::remove_cv_t<T>>);
    Operand o;
    o.kind = Kind::host;
    o.access = access;
    o.element = element_type<T>();
    o.size = sizeof(T);
    o.count = span.size();
    o.data = const_cast<void*>(static_cast<const void*>(span.data()));
    return o;
  }
  template <class T>
  static Operand of_value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if constexpr (sizeof(T) <= sizeof(inline_value)) {
      Operand o;
      o.kind = Kind::value;
      o.element = element_type<T>();
      o.size = sizeof(T);
      o.count = 1;
      std::memcpy(o.inline_value.data(), &value, sizeof(T));
      return o;
    } else {
      return of_bytes(std::as_bytes(std::span(&value, 1)));
    }
  }
  WYE_API static Operand of_bytes(std::span<const std::byte> bytes);
};

}  // namespace detail

}  // namespace wye
