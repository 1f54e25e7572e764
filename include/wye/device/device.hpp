#pragma once
/// Devices: adapters that are open.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/buffer.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace wye::inline v0 {

namespace device {
class DeviceBase;
}
namespace silicon {
class MemoryAccount;
}

/// A number, or the reason why it is missing.
template <class T>
struct Reading {
  std::optional<T> value = std::nullopt;
  std::string absence = {};  ///< a sentence; empty if there is a value
};

/// The state of hardware at the time of the call, with the work of all processes.
struct Monitoring {
  std::string device;                       ///< "cuda:0"
  Reading<Bytes> memory_total;              ///< of the hardware
  Reading<Bytes> memory_used;               ///< by all processes and the driver
  Reading<double> utilization;              ///< fraction of the recent past in which any kernel ran, 0 to 1
  Reading<double> temperature;              ///< degrees Celsius
  Reading<std::uint64_t> corrected_errors;  ///< memory errors that ECC corrected since the driver was loaded
  Reading<std::uint64_t> uncorrected_errors;  ///< memory errors that ECC could not correct
  Reading<bool> slowed_by_heat;               ///< its clocks are reduced because of its temperature
};

/// An open device. Copies share it. It closes with its last handle, buffer, executable and lane.
/// Threads: thread-safe.
class WYE_API Device {
 public:
  Device() = default;
  explicit Device(std::shared_ptr<device::DeviceBase> state) : state_(std::move(state)) {}
  explicit operator bool() const noexcept { return state_ != nullptr; }

  const AdapterInfo& info() const;
  /// Returns "vulkan:0" and the like.
  const std::string& id() const { return info().id; }
  MemoryInfo memory() const;
  /// Reads memory, utilization, temperature and errors from the monitor of the hardware: NVIDIA's
  /// NVML, opened at run time if it is installed. Missing values have a reason.
  /// Cost: calls of the driver, which take milliseconds on some hardware; uses no context.
  Monitoring monitor() const;

  /// Allocates `count` elements without initializing them.
  /// Errors: invalid_argument (the size overflows), out_of_memory (over the limit of the device, or
  ///         no free memory), device_lost.
  template <class T>
  Result<Buffer> buffer(std::uint64_t count) const {
    return allocate(count, element_type<T>(), sizeof(T), nullptr);
  }
  friend bool operator==(const Device& a, const Device& b) { return a.state_ == b.state_; }

 private:
  friend struct detail::Internals;
  Result<Buffer> allocate(std::uint64_t count, ElementType element, std::uint32_t element_size,
                          const std::shared_ptr<silicon::MemoryAccount>& account,
                          const std::shared_ptr<silicon::MemoryAccount>& tag = nullptr) const;
  std::shared_ptr<device::DeviceBase> state_;
};

}  // namespace wye
