#pragma once
/// Parameter types of kernels. `Kernel<ReadWrite<float>, float>` declares a schema. A function with
/// a parameter `ReadWrite<float>` accepts every argument that such a kernel accepts.
#include <wye/device/buffer.hpp>
#include <wye/device/detail/members.hpp>
#include <wye/device/detail/native_code.hpp>
#include <wye/device/detail/operand.hpp>
#include <wye/device/schema.hpp>

#include <concepts>
#include <cstring>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace wye::inline v0 {

namespace detail {

/// A type of wye that can be an operand: Array<T>, Buffer, Scratch<T>.
template <class A>
concept HasOperand = requires(const A& a) {
  { a.operand(Access::read) } -> std::same_as<Operand>;
};

/// The same, with elements of `T` or of unknown type.
template <class A, class T>
concept HasOperandOf = HasOperand<A> &&(
    !requires { typename A::value_type; } || requires { requires std::same_as<typename A::value_type, T>; });

/// Host memory that outlives the expression: an lvalue container, or a span.
template <class A, class T>
concept HostMemory = !HasOperand<std::remove_cvref_t<A>> && std::ranges::contiguous_range<A> &&
                     std::ranges::sized_range<A> && std::ranges::borrowed_range<A> &&
                     std::is_convertible_v<decltype(std::ranges::data(std::declval<A&>())), T*>;

/// A container that would end before the job reads it.
template <class A, class T>
concept TemporaryMemory = !HostMemory<A, T> && HostMemory<std::remove_reference_t<A>&, T>;

template <class T, Access access>
class Parameter {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
  using Element = std::conditional_t<writes(access), T, const T>;

 public:
  using element_type = T;
  static constexpr Access access_mode = access;

  /// Borrows host memory until the job has completed.
  template <HostMemory<Element> A>
  Parameter(A&& memory)  // NOLINT
      : operand_(Operand::host_span(std::span<Element>(std::ranges::data(memory), std::ranges::size(memory)),
                                    access)) {}
  template <TemporaryMemory<Element> A>
  Parameter(A&&) = delete;  // give the container a name: it has to outlive the job
  template <HasOperandOf<T> A>
  Parameter(const A& object) : operand_(object.operand(access)) {}  // NOLINT

  const Operand& operand() const { return operand_; }
  std::uint64_t size() const { return operand_.count; }
  /// Returns elements [first, first + count).
  Parameter slice(std::uint64_t first, std::uint64_t count) const {
    Parameter part = *this;
    part.operand_ = operand_.slice(first, count);
    return part;
  }

 private:
  Operand operand_;
};

}  // namespace detail

/// Elements of `T` that the kernel reads.
template <class T>
struct Read : detail::Parameter<T, Access::read> {
  using detail::Parameter<T, Access::read>::Parameter;
  Read(const detail::Parameter<T, Access::read>& p) : detail::Parameter<T, Access::read>(p) {}
};
/// Elements of `T` that the kernel writes completely. Their previous contents need not be copied to
/// the device. This is a promise of the kernel's author, which no source proves: `writeonly` in GLSL
/// only says that the kernel reads nothing. A kernel that writes a part of the elements, or that may
/// leave one out, declares `ReadWrite`.
///
/// An element that the kernel does not write against the promise never has data of another job or
/// another part of the process. On the CPU it keeps its value. Elsewhere it keeps the value of the
/// caller's memory or is zero, and an element of an array is zero or has an earlier value of the
/// array.
template <class T>
struct Write : detail::Parameter<T, Access::write> {
  using detail::Parameter<T, Access::write>::Parameter;
  Write(const detail::Parameter<T, Access::write>& p) : detail::Parameter<T, Access::write>(p) {}
};
/// Elements of `T` that the kernel reads and writes, or writes in part.
template <class T>
struct ReadWrite : detail::Parameter<T, Access::read_write> {
  using detail::Parameter<T, Access::read_write>::Parameter;
  ReadWrite(const detail::Parameter<T, Access::read_write>& p)
      : detail::Parameter<T, Access::read_write>(p) {}
};

namespace detail {

/// Maps a parameter type to its slot, its operand, and the arguments of host functions and native
/// functions.
template <class P>
struct ParameterTraits {
  static_assert(std::is_trivially_copyable_v<P>,
                "a kernel parameter is Read, Write, ReadWrite or a plain value");
  using Host = P;
  using Native = P;
  static Slot slot() {
    return {.name = {},
            .kind = element_type<P>() == ElementType::opaque ? SlotKind::structure : SlotKind::scalar,
            .access = Access::read,
            .element = element_type<P>(),
            .size = sizeof(P),
            .members = members_of<P>()};
  }
  static Operand operand(const P& value) { return Operand::of_value(value); }
  static Host host(const Operand& operand) {
    P value;
    std::memcpy(&value, operand.value().data(), sizeof(P));
    return value;
  }
  static Native native(const NativeArgument& argument) {
    P value;
    std::memcpy(&value, argument.value.data(), sizeof(P));
    return value;
  }
};

template <class T, Access access, class P>
struct BufferTraits {
  using Element = std::conditional_t<writes(access), T, const T>;
  using Host = std::span<Element>;
  using Native = DeviceSpan<Element>;
  static Slot slot() {
    return {.name = {},
            .kind = SlotKind::buffer,
            .access = access,
            .element = element_type<T>(),
            .size = sizeof(T),
            .members = members_of<T>()};
  }
  static Operand operand(const P& parameter) { return parameter.operand(); }
  static Host host(const Operand& operand) {
    return Host(static_cast<Element*>(operand.data), static_cast<std::size_t>(operand.count));
  }
  static Native native(const NativeArgument& argument) {
    return {reinterpret_cast<Element*>(static_cast<std::uintptr_t>(argument.address)), argument.count};
  }
};
template <class T>
struct ParameterTraits<Read<T>> : BufferTraits<T, Access::read, Read<T>> {};
template <class T>
struct ParameterTraits<Write<T>> : BufferTraits<T, Access::write, Write<T>> {};
template <class T>
struct ParameterTraits<ReadWrite<T>> : BufferTraits<T, Access::read_write, ReadWrite<T>> {};

}  // namespace detail

}  // namespace wye
