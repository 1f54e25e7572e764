#pragma once
/// What a caller hands to a kernel: host memory, a buffer, an array, scratch memory, a value.
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

namespace wye {
inline namespace v0 {

class Buffer;

namespace device {

/// What an operand keeps alive: a buffer of a backend, an array of the data room, the bytes of a large struct.
class WYE_API Retained {
 public:
  virtual ~Retained();
};

}  // namespace device

/// One argument of a call, typed.
/// Threads: thread-compatible. Host memory is borrowed until the job it is part of has settled.
class Operand {
 public:
  enum class Kind : std::uint8_t {
    none,
    host,     ///< `data`, `count` elements of the caller's
    buffer,   ///< `object` is a device buffer; `offset` and `count` say which elements
    array,    ///< `object` is an array of the runtime
    scratch,  ///< memory that lives as long as the job; `id` tells several apart
    value,    ///< bytes: a scalar or a struct
    address,  ///< the device address of `object`, with `access` to all of it
  };

  Kind kind = Kind::none;
  Access access = Access::none;
  ElementType element = ElementType::opaque;
  std::uint32_t size = 0;    ///< bytes of one element, or of the value
  std::uint64_t count = 0;   ///< elements
  std::uint64_t offset = 0;  ///< first element, of buffers, arrays and scratch
  void* data = nullptr;      ///< host memory; never written where `access` is read
  std::uint64_t id = 0;      ///< scratch
  std::shared_ptr<device::Retained> object;
  std::array<std::byte, 16> inline_value{};

  /// The size of all elements; the largest there is if 64 bits cannot count it.
  Bytes bytes() const {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    return Bytes{size != 0 && count > most / size ? most : count * size};
  }
  /// Returns elements [first, first + n) of this operand. A slice that ends outside it has the largest count there is,
  /// and a job that gets it answers `invalid_argument`.
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
  /// The bytes of a value.
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

/// Device memory that lives as long as the job it is used in: results between the steps of a sequence.
/// Copies mean the same memory.
template <class T>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  /// Errors: none here; a job whose scratch does not fit answers out_of_memory or over_budget.
  explicit Scratch(std::uint64_t count) : count_(count), id_(detail_next()) {}
  std::uint64_t size() const { return count_; }
  Operand operand(Access access) const {
    Operand o;
    o.kind = Operand::Kind::scratch;
    o.access = access;
    o.element = element_type<T>();
    o.size = sizeof(T);
    o.count = count_;
    o.id = id_;
    return o;
  }

 private:
  static std::uint64_t detail_next();
  std::uint64_t count_;
  std::uint64_t id_;
};

namespace detail {
/// A number no other scratch of this process has.
WYE_API std::uint64_t next_scratch_id() noexcept;
}  // namespace detail
template <class T>
std::uint64_t Scratch<T>::detail_next() {
  return detail::next_scratch_id();
}

/// The arguments of one dispatch, in the order of the schema. Up to eight are held without allocating.
class Arguments {
 public:
  void push_back(Operand operand) {
    if (count_ < few_.size())
      few_[count_] = std::move(operand);
    else
      more_.push_back(std::move(operand));
    ++count_;
  }
  std::size_t size() const { return count_; }
  Operand& operator[](std::size_t i) { return i < few_.size() ? few_[i] : more_[i - few_.size()]; }
  const Operand& operator[](std::size_t i) const {
    return i < few_.size() ? few_[i] : more_[i - few_.size()];
  }

 private:
  std::array<Operand, 8> few_;
  std::size_t count_ = 0;
  std::vector<Operand> more_;
};

namespace detail {
/// Arguments and the grid to run them over, as `Call` has them.
template <class C>
concept CallLike = requires(const C& call) {
  { call.arguments() } -> std::same_as<const Arguments&>;
  { call.items() } -> std::same_as<Extent3>;
};
}  // namespace detail

}  // namespace v0
}  // namespace wye
