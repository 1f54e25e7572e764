#pragma once
/// Memory on one device, explicit.
#include <wye/base/bytes.hpp>
#include <wye/device/operand.hpp>

#include <cstdint>
#include <memory>

namespace wye {
inline namespace v0 {

namespace device {
class BufferBase;
}

/// A run of elements in the memory of one device. Copies share the memory; it is freed when the last one and the last
/// use by the device are gone.
/// Threads: thread-compatible. What two lanes do to one buffer is ordered only by waiting.
class WYE_API Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::shared_ptr<device::BufferBase> base, ElementType element, std::uint32_t element_size);

  explicit operator bool() const noexcept { return base_ != nullptr; }
  Bytes bytes() const noexcept;
  /// Elements.
  std::uint64_t size() const noexcept;
  /// The address kernels see, or 0 where the device has none.
  std::uint64_t address() const noexcept;
  /// This buffer as an operand; `first` and `count` in elements.
  Operand operand(Access access) const;
  Operand operand(Access access, std::uint64_t first, std::uint64_t count) const;

  const std::shared_ptr<device::BufferBase>& base() const noexcept { return base_; }

 private:
  std::shared_ptr<device::BufferBase> base_;
  ElementType element_ = ElementType::opaque;
  std::uint32_t element_size_ = 1;
};

namespace detail {
template <class T>
Operand argument(const T& value) {
  if constexpr (std::is_same_v<T, Buffer>)
    return value.operand(Access::read_write);
  else
    return Operand::of_value(value);
}
}  // namespace detail

/// Arguments for `Lease::dispatch`: buffers and values, in the order of the kernel's parameters. A buffer's access is
/// what the kernel's schema declares.
template <class... A>
Arguments arguments(const A&... values) {
  Arguments list;
  (list.push_back(detail::argument(values)), ...);
  return list;
}

}  // namespace v0
}  // namespace wye
