#pragma once
/// Memory of devices, and the arguments of dispatches.
#include <wye/base/bytes.hpp>
#include <wye/base/extent.hpp>
#include <wye/device/detail/inline_list.hpp>
#include <wye/device/detail/operand.hpp>
#include <wye/device/schema.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace wye::inline v0 {

namespace device {
class BufferBase;
}

/// Elements in the memory of one device. Copies share the memory, which is freed after the last
/// copy has ended and the last use by the device has completed.
/// Threads: thread-compatible. Two lanes that use one buffer must wait for each other.
class WYE_API Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::shared_ptr<device::BufferBase> state, ElementType element, std::uint32_t element_size);

  explicit operator bool() const noexcept { return state_ != nullptr; }
  Bytes bytes() const noexcept;
  /// Returns the number of elements.
  std::uint64_t size() const noexcept;
  /// Returns the address that kernels see; 0 if the device has no addresses.
  std::uint64_t address() const noexcept;
  /// Returns elements [first, first + count) as an operand.
  detail::Operand operand(Access access) const;
  detail::Operand operand(Access access, std::uint64_t first, std::uint64_t count) const;

 private:
  friend struct detail::Internals;
  std::shared_ptr<device::BufferBase> state_;
  ElementType element_ = ElementType::opaque;
  std::uint32_t element_size_ = 1;
};

/// Device memory for results between the calls of one job, freed when the job has completed. Copies
/// are the same memory.
/// Threads: thread-compatible.
template <class T>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  /// Errors: none here; a job whose scratch memory does not fit returns out_of_memory or
  ///         over_budget.
  explicit Scratch(std::uint64_t count) : count_(count), id_(detail_next()) {}
  std::uint64_t size() const { return count_; }
  detail::Operand operand(Access access) const {
    detail::Operand o;
    o.kind = detail::Operand::Kind::scratch;
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
/// Returns a number that is unique among the scratch memories of this process.
WYE_API std::uint64_t next_scratch_id() noexcept;
}  // namespace detail
template <class T>
std::uint64_t Scratch<T>::detail_next() {
  return detail::next_scratch_id();
}

/// The arguments of one dispatch, in the order of the schema. Up to four need no allocation.
/// Threads: thread-compatible.
class Arguments {
 public:
  void push_back(detail::Operand operand) { all_.push_back(std::move(operand)); }
  /// Removes all, and releases the objects that they keep alive.
  void clear() noexcept { all_.clear(); }
  std::size_t size() const { return all_.size(); }
  detail::Operand& operator[](std::size_t i) { return all_[i]; }
  const detail::Operand& operator[](std::size_t i) const { return all_[i]; }
  const detail::Operand* begin() const { return all_.begin(); }
  const detail::Operand* end() const { return all_.end(); }

 private:
  detail::InlineList<detail::Operand, 4> all_;
};

namespace detail {
/// A type with arguments and a grid, such as `Call`.
template <class C>
concept CallLike = requires(const C& call) {
  { call.arguments() } -> std::same_as<const Arguments&>;
  { call.items() } -> std::same_as<Extent3>;
};
}  // namespace detail

namespace detail {
template <class T>
Operand argument(const T& value) {
  if constexpr (std::is_same_v<T, Buffer>)
    return value.operand(Access::read_write);
  else
    return Operand::of_value(value);
}
}  // namespace detail

/// Returns arguments for `Lease::dispatch`: buffers and values, in the order of the kernel's
/// parameters. The kernel's schema declares how each buffer is accessed.
template <class... A>
Arguments arguments(const A&... values) {
  Arguments list;
  (list.push_back(detail::argument(values)), ...);
  return list;
}

}  // namespace wye
