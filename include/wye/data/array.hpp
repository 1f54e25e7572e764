#pragma once
/// Arrays: handles of data that the runtime transfers between the host and devices when needed.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/detail/operand.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace wye::inline v0 {

namespace data {
class ArrayState;
class HostAccess;
/// Keeps the contents of an array on the host for reading or writing, until its last copy is
/// destroyed.
struct WYE_API View {
  std::shared_ptr<HostAccess> access;
  std::byte* bytes = nullptr;
  std::uint64_t count = 0;
};
}  // namespace data

/// Gives the host read access to an array. Jobs that change the array wait until the view is
/// destroyed.
/// Threads: one thread at a time; many may read its elements.
template <class T>
class ReadView {
 public:
  explicit ReadView(data::View view) : view_(std::move(view)) {}
  ReadView(ReadView&&) noexcept = default;
  ReadView& operator=(ReadView&&) noexcept = default;
  ReadView(const ReadView&) = delete;  // one view is one use of the array
  std::span<const T> span() const { return {reinterpret_cast<const T*>(view_.bytes), view_.count}; }
  const T* begin() const { return span().data(); }
  const T* end() const { return begin() + view_.count; }
  const T& operator[](std::uint64_t i) const { return begin()[i]; }
  std::uint64_t size() const { return view_.count; }
  const T* data() const { return begin(); }

 private:
  data::View view_;
};

/// Gives the host write access to an array. Jobs that use the array wait until the view is
/// destroyed.
/// Threads: one thread at a time; its elements are memory as any other.
template <class T>
class WriteView {
 public:
  explicit WriteView(data::View view) : view_(std::move(view)) {}
  WriteView(WriteView&&) noexcept = default;
  WriteView& operator=(WriteView&&) noexcept = default;
  WriteView(const WriteView&) = delete;  // one view is one use of the array
  std::span<T> span() const { return {reinterpret_cast<T*>(view_.bytes), view_.count}; }
  T* begin() const { return span().data(); }
  T* end() const { return begin() + view_.count; }
  T& operator[](std::uint64_t i) const { return begin()[i]; }
  std::uint64_t size() const { return view_.count; }
  T* data() const { return begin(); }

 private:
  data::View view_;
};

/// An array whose element type is known only at run time. The base class of `Array<T>`.
/// Threads: thread-safe; copies share one array.
class WYE_API AnyArray {
 public:
  /// The size of a slice that ends beyond its array.
  static constexpr std::uint64_t beyond = ~std::uint64_t{0};

  AnyArray() = default;
  explicit AnyArray(std::shared_ptr<data::ArrayState> state);
  /// Returns the number of elements; `beyond` for a slice that ends beyond its array.
  std::uint64_t size() const noexcept { return count_; }
  detail::Operand operand(Access access) const;

 protected:
  friend struct detail::Internals;
  void narrow(std::uint64_t first, std::uint64_t count) noexcept;
  Result<data::View> read_bytes(Deadline deadline) const;
  Result<data::View> write_bytes(Deadline deadline);
  std::shared_ptr<data::ArrayState> state_;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
};

/// Elements that may live on the host and on devices. A reader sees the last write before it in
/// order of submission. A failure sticks to the array: `read()` and every ticket that depends on
/// the array return it. If a device has no memory for an allocation, replicas on it are freed whose
/// contents are also valid elsewhere. An array outlives its runtime: the host can read and write it
/// after the runtime has closed, as long as its device is not lost. The array keeps that device
/// open until its last copy is destroyed.
/// Threads: thread-safe; copies share one array.
template <class T>
class Array : public AnyArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using AnyArray::AnyArray;
  /// Returns a handle of elements [first, first + count). Jobs and views of it use only these: jobs
  /// on slices that do not overlap run at the same time, and only the elements of a slice are
  /// transferred. Memory on a device is that of the whole array. A device binds slices that begin
  /// at a multiple of `Limits::offset_alignment` bytes, and refuses others as unsupported. Jobs,
  /// `read` and `write` of a slice that ends beyond this one return invalid_argument.
  Array slice(std::uint64_t first, std::uint64_t count) const {
    Array part = *this;
    part.narrow(first, count);
    return part;
  }
  /// Waits for the last writer, and copies the contents to the host if they are not valid there.
  /// The contents do not change while the view exists.
  /// Errors: timed_out; the failure of the job that should have written it.
  Result<ReadView<T>> read(Deadline deadline = {}) const {
    auto view = read_bytes(deadline);
    if (!view) return std::move(view).error();
    return ReadView<T>(std::move(*view));
  }
  /// Waits for all users and locks the array until the view is destroyed. Clears the failure of a
  /// failed array.
  /// Errors: timed_out.
  Result<WriteView<T>> write(Deadline deadline = {}) {
    auto view = write_bytes(deadline);
    if (!view) return std::move(view).error();
    return WriteView<T>(std::move(*view));
  }
};

}  // namespace wye
