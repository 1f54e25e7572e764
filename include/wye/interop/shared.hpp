#pragma once
/// One memory for two devices, where they are one processor behind two drivers: CUDA and Vulkan on one card.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/device.hpp>
#include <wye/pool/lease.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace wye {
inline namespace v0 {
namespace interop {

struct SharedState;

/// Memory that two devices use in turn: the same one where their drivers can share it, else one on each, and a copy at each
/// turn. Buffers taken out of it live on their own, each as long as it is used.
/// Threads: thread-compatible; copies mean the same memory.
class WYE_API SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(std::shared_ptr<SharedState> state) : state_(std::move(state)) {}
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// The memory as lanes of `device` use it; a buffer that holds nothing where that is neither of the two.
  Buffer on(const Device& device) const;
  /// Why there are two memories; empty where there is one.
  const std::string& why_copied() const;
  /// Why the host waits when it is the other's turn; empty where the devices wait for each other.
  const std::string& why_waited() const;

  /// Ends the turn of `from`, a lane of one device, and begins that of `to`, a lane of the other: what `to` is given from now
  /// on comes behind all that `from` was given so far, and finds in the memory what that left there. Submits.
  /// Errors: invalid_argument (no lanes of the two devices), timed_out (only where the host waits), the failure of either
  ///         lane. Where `from` fails later, or its device is lost before its turn has ended, so does `to`, at its next `wait`:
  ///         what it was given has run on whatever was in the memory. One thing is out of wye's hands: a driver that does not
  ///         raise a semaphore of a device it has lost leaves the stream of the other one waiting, until its `wait` times out.
  /// Cost:   one memory and timelines: two submissions, and nobody waits on the host. Else the host waits for `from`; two
  ///         memories: and copies all of it, through the host where the devices do not reach each other.
  Result<void> hand_over(Lease& from, Lease& to, Deadline deadline = {});

 private:
  std::shared_ptr<SharedState> state_;
};

WYE_API Result<SharedBuffer> share(const Device& a, const Device& b, std::uint64_t count, ElementType element,
                                   std::uint32_t element_size);

/// Allocates `count` elements, uninitialized, for `a` and `b`: by the driver of `a`, or where that does not share, of `b`. What
/// the drivers cannot is no error: `why_copied` and `why_waited` say it.
/// Errors: invalid_argument (an empty handle, twice the same device, the size overflows), out_of_memory, device_lost.
template <class T>
Result<SharedBuffer> share(const Device& a, const Device& b, std::uint64_t count) {
  return share(a, b, count, element_type<T>(), sizeof(T));
}

}  // namespace interop
}  // namespace v0
}  // namespace wye
