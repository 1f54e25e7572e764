#pragma once
/// The port through which owners of device memory free it.
#include <wye/base/bytes.hpp>
#include <wye/device/adapter.hpp>

#include <cstdint>

namespace wye::inline v0::device {

class DeviceBase;

/// An owner of device memory that it can free on demand. `DeviceBase::allocate` calls it when an
/// allocation fails.
/// Threads: thread-safe.
class Reclaimable {
 public:
  virtual ~Reclaimable() = default;
  virtual IdleMemory kind() const noexcept = 0;
  /// Frees memory of `device` that is not in use, until `wanted` bytes are free or no more is idle.
  /// Returns the number of bytes that it freed.
  virtual Bytes reclaim(const DeviceBase& device, Bytes wanted) = 0;
  /// Returns the `DeviceBase::next_use` of the last use of its memory of `device`. Of one kind the
  /// least recently used is asked first, and owners that keep no such number before all others.
  virtual std::uint64_t last_use(const DeviceBase&) const noexcept { return 0; }
  /// Moves those of its buffers of `device` that are `is_to_move` and that nothing uses to other
  /// memory of the device.
  virtual void move_buffers(DeviceBase&) noexcept {}
};

}  // namespace wye::device
