#pragma once
/// Memory that CUDA and Vulkan share on one device.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/device.hpp>
#include <wye/pool/lease.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace wye::inline v0::interop {

struct SharedState;

/// Memory that two devices use alternately. If their drivers can share memory, there is one
/// allocation. Otherwise each device has one, and each `hand_over` copies. Buffers of `on` may
/// outlive the SharedBuffer.
/// Threads: thread-compatible; copies are the same memory.
class WYE_API SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(std::shared_ptr<SharedState> state) : state_(std::move(state)) {}
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Returns the buffer for lanes of `device`; an empty buffer if it is neither of the two devices.
  Buffer on(const Device& device) const;
  /// Returns the reason for two allocations; empty if there is one.
  const std::string& why_copied() const;
  /// Returns the reason why the host waits in `hand_over`; empty if the devices wait for each
  /// other.
  const std::string& why_waited() const;

  /// Passes the memory from `from`, a lane of one device, to `to`, a lane of the other. Later commands of `to` run after all
  /// commands of `from` so far, and see their results. Submits both lanes.
  /// Errors:  invalid_argument (lanes of other devices), timed_out (only if the host waits), the failure of
  ///          either lane.
  ///         If `from` fails later, or its device is lost before, `to` fails at its next `wait`: its commands ran on undefined
  ///         contents. If a driver does not signal the semaphore of a lost device, the stream of the other device blocks until
  ///         its `wait` times out.
  /// Cost:    with one allocation and shared timelines: two submissions without a wait on the host. Otherwise
  ///          the host waits for `from`. With two allocations it also copies all bytes, through the host if
  ///          the devices cannot access each other.
  Result<void> hand_over(Lease& from, Lease& to, Deadline deadline = {});

 private:
  std::shared_ptr<SharedState> state_;
};

WYE_API Result<SharedBuffer> share(const Device& a, const Device& b, std::uint64_t count, ElementType element,
                                   std::uint32_t element_size);

/// Allocates `count` elements for `a` and `b` without initializing them: by the driver of `a`,
/// otherwise by the driver of `b`. Missing support of the drivers is not an error: `why_copied` and
/// `why_waited` report it.
/// Errors: invalid_argument (an empty handle, the same device twice, the size overflows),
///         out_of_memory, device_lost.
template <class T>
Result<SharedBuffer> share(const Device& a, const Device& b, std::uint64_t count) {
  return share(a, b, count, element_type<T>(), sizeof(T));
}

}  // namespace wye::interop
