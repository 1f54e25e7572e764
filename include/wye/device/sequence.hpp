#pragma once
/// Work of one device that is recorded once and run many times.
#include <wye/base/bytes.hpp>
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>
#include <wye/device/operand.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace wye {
inline namespace v0 {

namespace device {
class SequenceState;
}

/// A list of steps that any lane of its device runs as often as it is submitted (`Lease::submit`), with other arguments
/// where they were set between. Runs that are in flight keep the arguments they were submitted with. On CUDA it is a graph
/// of the driver: a run costs one launch, and other arguments cost no new graph.
/// Threads: one thread at a time.
class WYE_API Sequence {
 public:
  explicit Sequence(const Device& device);
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;
  Sequence(const Sequence&) = delete;  // what the driver made of it has one owner
  ~Sequence();

  /// Adds a step, and returns its number. What is wrong with it is the failure of the lane that it is submitted to.
  std::size_t copy(const Buffer& source, const Buffer& target, Bytes bytes);
  std::size_t fill(const Buffer& target, std::uint32_t pattern);
  /// Runs `executable` over the element count of its first written operand.
  std::size_t dispatch(const Executable& executable, const Arguments& arguments);
  std::size_t dispatch(const Executable& executable, const Arguments& arguments, Extent3 items);
  /// Runs `executable`, made of the call's kernel, with the arguments and over the grid of `call`.
  template <detail::CallLike C>
  std::size_t dispatch(const Executable& executable, const C& call) {
    return dispatch(executable, call.arguments(), call.items());
  }
  /// Steps so far.
  std::size_t size() const noexcept;

  /// Gives the dispatch that is step `step` another buffer or value as its argument number `argument`. The grid stays.
  /// Errors: invalid_argument: no such dispatch or argument.
  template <class T>
  Result<void> set(std::size_t step, std::size_t argument, const T& value) {
    return set_operand(step, argument, detail::argument(value));
  }

  /// What is behind it, for rooms of wye.
  device::SequenceState& state() const noexcept { return *state_; }

 private:
  Result<void> set_operand(std::size_t step, std::size_t argument, Operand operand);
  std::unique_ptr<device::SequenceState> state_;
};

}  // namespace v0
}  // namespace wye
