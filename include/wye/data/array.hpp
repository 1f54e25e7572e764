#pragma once
/// Data that stays where it is used: host-side handles whose contents the runtime moves when needed.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/detail/operand.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace wye {
inline namespace v0 {

namespace data {
class ArrayState;
class HostAccess;
/// What a view holds: the host's turn with the array's contents. Ends with the last copy.
struct WYE_API View {
  std::shared_ptr<HostAccess> access;
  std::byte* bytes = nullptr;
  std::uint64_t count = 0;
};
}  // namespace data

/// The contents of an array for the host to read, held still while this is in scope: jobs that would change
/// them wait.
template <class T>
class ReadView {
 public:
  explicit ReadView(data::View view) : view_(std::move(view)) {}
  ReadView(ReadView&&) noexcept = default;
  ReadView& operator=(ReadView&&) noexcept = default;
  ReadView(const ReadView&) = delete;  // one view is one turn
  std::span<const T> span() const { return {reinterpret_cast<const T*>(view_.bytes), view_.count}; }
  const T* begin() const { return span().data(); }
  const T* end() const { return begin() + view_.count; }
  const T& operator[](std::uint64_t i) const { return begin()[i]; }
  std::uint64_t size() const { return view_.count; }
  const T* data() const { return begin(); }

 private:
  data::View view_;
};

/// The contents of an array for the host to change: jobs that use it wait until this ends.
template <class T>
class WriteView {
 public:
  explicit WriteView(data::View view) : view_(std::move(view)) {}
  WriteView(WriteView&&) noexcept = default;
  WriteView& operator=(WriteView&&) noexcept = default;
  WriteView(const WriteView&) = delete;  // one view is one turn
  std::span<T> span() const { return {reinterpret_cast<T*>(view_.bytes), view_.count}; }
  T* begin() const { return span().data(); }
  T* end() const { return begin() + view_.count; }
  T& operator[](std::uint64_t i) const { return begin()[i]; }
  std::uint64_t size() const { return view_.count; }
  T* data() const { return begin(); }

 private:
  data::View view_;
};

/// An array whose element type is known only at run time; `Array<T>` is one.
/// Threads: thread-safe; copies share one array.
class WYE_API AnyArray {
 public:
  AnyArray() = default;
  explicit AnyArray(std::shared_ptr<data::ArrayState> state) : state_(std::move(state)) {}
  /// Elements.
  std::uint64_t size() const noexcept;
  detail::Operand operand(Access access) const;

 protected:
  friend struct detail::Internals;
  Result<data::View> read_bytes(Deadline deadline) const;
  Result<data::View> write_bytes(Deadline deadline);
  std::shared_ptr<data::ArrayState> state_;
};

/// `n` elements that may live on the host and on devices; who reads sees what was written last, in order of
/// submission. What fails sticks to the array: it comes out of `read()` and of every ticket that depends on
/// it.
/// An array outlives its runtime: what was written can be read and written by the host after the runtime has ended, on every
/// backend, as long as its device is not lost. The array keeps that device open until its last copy ends.
/// Threads: thread-safe; copies share one array.
template <class T>
class Array : public AnyArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using AnyArray::AnyArray;
  /// Waits for the last writer, moves what is missing to the host, and holds it still while the view is in
  /// scope.
  /// Errors: timed_out; the failure of the job that should have written it.
  Result<ReadView<T>> read(Deadline deadline = {}) const {
    auto view = read_bytes(deadline);
    if (!view) return std::move(view).error();
    return ReadView<T>(std::move(*view));
  }
  /// Waits for all users, and holds the array until the view ends; a failed array is mended by it.
  /// Errors: timed_out.
  Result<WriteView<T>> write(Deadline deadline = {}) {
    auto view = write_bytes(deadline);
    if (!view) return std::move(view).error();
    return WriteView<T>(std::move(*view));
  }
};

}  // namespace v0
}  // namespace wye
