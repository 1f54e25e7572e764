#pragma once
/// Order of a device's work: points to wait for, and sequences that are recorded once and run many
/// times.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace wye::inline v0 {

namespace device {
class SequenceState;
class Timeline;
}  // namespace device

/// A point in the order of a device's work, reached when all work before it has completed: work of
/// a lane (`Lease::point`), or of the host (`interop`). An empty point is reached.
/// Threads: thread-safe; copies are the same point.
class WYE_API SyncPoint {
 public:
  SyncPoint() = default;
  explicit SyncPoint(std::shared_ptr<device::Timeline> timeline, std::uint64_t value)
      : state_(std::move(timeline)), value_(value) {}

  bool reached() const noexcept;
  /// Waits until it is reached. `deadline` is of the steady clock.
  /// Errors: timed_out; if it cannot be reached: closed, device_lost, or the failure of the work
  ///         before it.
  Result<void> wait(Deadline deadline = {}) const;

 private:
  friend struct detail::Internals;
  std::shared_ptr<device::Timeline> state_;
  std::uint64_t value_ = 0;
};

/// A list of steps that any lane of its device can run many times (`Lease::submit`). `set` changes
/// an argument between runs; runs in flight keep their arguments. On CUDA it is a graph of the
/// driver: a run costs one launch, and a changed argument costs no new graph.
/// Threads: one thread at a time.
class WYE_API Sequence {
 public:
  explicit Sequence(const Device& device);
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;
  Sequence(const Sequence&) = delete;  // the driver's graph has one owner
  ~Sequence();

  /// Adds a step and returns its number. The lane that runs the sequence reports the error of a
  /// wrong step.
  std::size_t copy(const Buffer& source, const Buffer& target, Bytes bytes);
  std::size_t fill(const Buffer& target, std::uint32_t pattern);
  /// Runs `executable` over the element count of its first written operand.
  std::size_t dispatch(const Executable& executable, const Arguments& arguments);
  std::size_t dispatch(const Executable& executable, const Arguments& arguments, Extent3 items);
  /// Runs `executable`, which was built from the kernel of `call`, with the arguments and the grid
  /// of `call`.
  template <detail::CallLike C>
  std::size_t dispatch(const Executable& executable, const C& call) {
    return dispatch(executable, call.arguments(), call.items());
  }
  /// Returns the number of steps.
  std::size_t size() const noexcept;

  /// Replaces argument number `argument` of the dispatch with number `step`. The grid stays the
  /// same.
  /// Errors: invalid_argument (no such dispatch or argument).
  template <class T>
  Result<void> set(std::size_t step, std::size_t argument, const T& value) {
    return set_operand(step, argument, detail::argument(value));
  }

 private:
  friend struct detail::Internals;
  Result<void> set_operand(std::size_t step, std::size_t argument, detail::Operand operand);
  std::unique_ptr<device::SequenceState> state_;
};

}  // namespace wye
