#pragma once
/// An opened adapter.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/monitoring.hpp>

#include <memory>
#include <string>

namespace wye {
inline namespace v0 {

namespace device {
class DeviceBase;
class MemoryAccount;
}  // namespace device

/// A device that is open. Copies share it; it closes with its last handle and its last buffer, executable or lane.
/// Threads: thread-safe.
class WYE_API Device {
 public:
  Device() = default;
  explicit Device(std::shared_ptr<device::DeviceBase> base) : base_(std::move(base)) {}
  explicit operator bool() const noexcept { return base_ != nullptr; }

  const AdapterInfo& info() const;
  /// "vulkan:0".
  const std::string& id() const { return info().id; }
  MemoryInfo memory() const;
  /// Asks the hardware's own monitor (NVIDIA's NVML, opened at run time where it is installed) for memory, utilization,
  /// temperature and errors. What it does not say has a reason.
  /// Cost: calls of the driver, some of them milliseconds on some hardware; no context is made or touched.
  Monitoring monitor() const;

  /// Allocates `count` elements, uninitialized.
  /// Errors: invalid_argument (the size overflows), out_of_memory (larger than the device's limit, or no room),
  ///         device_lost.
  template <class T>
  Result<Buffer> buffer(std::uint64_t count) const {
    return allocate(count, element_type<T>(), sizeof(T), nullptr);
  }
  /// The same for an element type known at run time, charged to `account` where there is one.
  Result<Buffer> allocate(std::uint64_t count, ElementType element, std::uint32_t element_size,
                          const std::shared_ptr<device::MemoryAccount>& account) const;

  const std::shared_ptr<device::DeviceBase>& base() const noexcept { return base_; }
  friend bool operator==(const Device& a, const Device& b) { return a.base_ == b.base_; }

 private:
  std::shared_ptr<device::DeviceBase> base_;
};

}  // namespace v0
}  // namespace wye
